"""register, beat, cancelling, deregister, workers: one lease per worker, by the store's clock."""

from __future__ import annotations

import pytest
from tests.conformance.scene import LEASE, SECOND, Scene, success

from perdure.errors import LeaseLost
from perdure.model.job import WorkerId
from perdure.store.workers import WorkerInfo


def test_a_registered_worker_is_listed_with_what_it_said(scene: Scene) -> None:
    worker = WorkerId("worker-1")
    scene.store.register(
        worker, host="näh", pid=42, queues=("mail", "a,b"), concurrency=9, version="2.1", lease=LEASE
    ).wait()
    now = scene.clock.now()
    assert scene.store.workers().wait() == [
        WorkerInfo(
            id=worker,
            host="näh",
            pid=42,
            queues=("mail", "a,b"),
            concurrency=9,
            version="2.1",
            started_at=now,
            beat_at=now,
            lease_until=now + LEASE,
            running=0,
        )
    ]


def test_workers_come_oldest_first_with_how_many_jobs_they_run(scene: Scene) -> None:
    scene.store.enqueue([scene.new_job() for _ in range(3)]).wait()
    second = scene.worker("b")
    scene.pass_time(SECOND)
    third = scene.worker("a")
    jobs = scene.fetch(third, limit=3)
    scene.end(jobs[0], success(jobs[0]))
    assert [(found.id, found.running) for found in scene.store.workers().wait()] == [(second, 0), (third, 2)]


def test_a_repeated_register_is_one_worker_with_a_new_lease(scene: Scene) -> None:
    worker = scene.worker()
    scene.pass_time(SECOND)
    scene.worker()
    (found,) = scene.store.workers().wait()
    assert (found.id, found.lease_until) == (worker, scene.clock.now() + LEASE)


def test_a_beat_renews_the_lease_from_the_stores_now(scene: Scene) -> None:
    worker = scene.worker()
    scene.pass_time(20 * SECOND)
    scene.store.beat(worker, 50 * SECOND).wait()
    (found,) = scene.store.workers().wait()
    assert (found.beat_at, found.lease_until) == (scene.clock.now(), scene.clock.now() + 50 * SECOND)


def test_a_beat_tells_what_the_worker_holds(scene: Scene) -> None:
    worker, other = scene.worker("worker-1"), scene.worker("worker-2")
    scene.running(other)
    scene.store.enqueue([scene.new_job() for _ in range(3)]).wait()
    jobs = scene.fetch(worker)
    scene.end(jobs[0], success(jobs[0]))
    held = scene.store.beat(worker, LEASE).wait().held
    assert sorted(held) == sorted(job.fence for job in jobs[1:])


def test_a_worker_that_holds_nothing_is_told_so(scene: Scene) -> None:
    assert scene.store.beat(scene.worker(), LEASE).wait().held == ()


def test_a_late_renewal_counts_until_the_worker_is_struck_off(scene: Scene) -> None:
    worker = scene.worker()
    # As far as the store can tell, its clock may have jumped.
    scene.pass_time(2 * LEASE)
    scene.store.beat(worker, LEASE).wait()
    (found,) = scene.store.workers().wait()
    assert found.lease_until == scene.clock.now() + LEASE
    scene.pass_time(LEASE)
    scene.store.reap(10).wait()
    with pytest.raises(LeaseLost):
        scene.store.beat(worker, LEASE).wait()


def test_a_stranger_cannot_beat(scene: Scene) -> None:
    with pytest.raises(LeaseLost):
        scene.store.beat(WorkerId("stranger"), LEASE).wait()


def test_a_worker_learns_which_of_its_jobs_are_to_be_cancelled(scene: Scene) -> None:
    worker, other = scene.worker("worker-1"), scene.worker("worker-2")
    theirs = scene.running(other)
    scene.store.enqueue([scene.new_job() for _ in range(3)]).wait()
    jobs = scene.fetch(worker)
    scene.store.cancel([jobs[1].id, theirs.id], "cancelled").wait()
    assert scene.store.cancelling(worker).wait() == (jobs[1].id,)
    assert scene.store.cancelling(other).wait() == (theirs.id,)


def test_a_job_that_has_ended_is_no_longer_to_be_cancelled(scene: Scene) -> None:
    job = scene.running()
    scene.store.cancel([job.id], "cancelled").wait()
    scene.end(job, success(job))
    assert scene.store.cancelling(WorkerId("worker-1")).wait() == ()


def test_a_worker_that_goes_is_no_longer_listed_and_cannot_fetch(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.deregister(worker).wait()
    assert scene.store.workers().wait() == []
    with pytest.raises(LeaseLost):
        scene.fetch(worker)


def test_going_twice_is_fine(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.deregister(worker).wait()
    scene.store.deregister(worker).wait()


def test_a_worker_may_register_anew_after_its_lease_was_lost(scene: Scene) -> None:
    worker = scene.worker()
    scene.pass_time(LEASE)
    scene.store.reap(10).wait()
    scene.worker("worker-2")
    scene.enqueue()
    assert len(scene.fetch(WorkerId("worker-2"))) == 1
    with pytest.raises(LeaseLost):
        scene.fetch(worker)
