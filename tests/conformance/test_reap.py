"""reap: workers whose lease ran out are struck off, and running jobs without a living worker are shown."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.scene import LEASE, SECOND, Scene, failure

from perdure.errors import LeaseLost
from perdure.model.job import WorkerId
from perdure.store.workers import Renewal


def test_a_worker_is_struck_off_exactly_when_its_lease_is_over(scene: Scene) -> None:
    worker = scene.worker()
    scene.pass_time(LEASE - timedelta(microseconds=1))
    assert scene.store.reap(10).wait().workers == ()
    scene.pass_time(timedelta(microseconds=1))
    assert scene.store.reap(10).wait().workers == (worker,)
    assert scene.store.workers().wait() == []


def test_a_worker_is_struck_off_once(scene: Scene) -> None:
    scene.worker()
    scene.pass_time(LEASE)
    scene.store.reap(10).wait()
    assert scene.store.reap(10).wait().workers == ()


def test_a_worker_struck_off_cannot_come_back_by_beating(scene: Scene) -> None:
    worker = scene.worker()
    scene.pass_time(LEASE)
    scene.store.reap(10).wait()
    with pytest.raises(LeaseLost):
        scene.store.beat(worker, LEASE).wait()


def test_the_jobs_of_a_vanished_worker_are_shown_as_they_run(scene: Scene) -> None:
    job = scene.running(scene.worker(), args=b"[1]")
    scene.pass_time(LEASE)
    assert scene.store.reap(10).wait().jobs == (job,)


def test_jobs_are_shown_until_they_are_decided_about(scene: Scene) -> None:
    job = scene.running()
    scene.pass_time(LEASE)
    scene.store.reap(10).wait()
    assert scene.store.reap(10).wait().jobs == (job,)
    assert scene.end(job, failure(job, attempt="lost", reason="lost"))
    assert scene.store.reap(10).wait().jobs == ()


def test_the_jobs_of_living_workers_are_left_alone(scene: Scene) -> None:
    living, vanished = scene.worker("living", lease=timedelta(hours=1)), scene.worker("vanished")
    scene.running(living, queue="a")
    lost = scene.running(vanished, queue="b")
    scene.pass_time(LEASE)
    reaped = scene.store.reap(10).wait()
    assert reaped.workers == (vanished,)
    assert reaped.jobs == (lost,)


def test_the_jobs_of_a_worker_that_went_by_itself_are_found(scene: Scene) -> None:
    job = scene.running()
    scene.store.deregister(WorkerId("worker-1")).wait()
    reaped = scene.store.reap(10).wait()
    assert (reaped.workers, reaped.jobs) == ((), (job,))


def test_no_more_jobs_than_the_limit_are_shown_and_none_is_forgotten(scene: Scene) -> None:
    workers = [scene.worker(f"worker-{number}") for number in range(3)]
    scene.store.enqueue([scene.new_job() for _ in range(30)]).wait()
    for worker in workers:
        assert len(scene.fetch(worker, limit=10)) == 10
    scene.pass_time(LEASE)
    seen = set()
    while jobs := scene.store.reap(7).wait().jobs:
        assert len(jobs) <= 7
        for job in jobs:
            seen.add(job.id)
            assert scene.end(job, failure(job, attempt="lost", reason="lost"))
    assert len(seen) == 30


def test_a_renewed_lease_is_not_reaped(scene: Scene) -> None:
    worker = scene.worker()
    scene.pass_time(LEASE - SECOND)
    scene.store.beat(worker, LEASE).wait()
    scene.pass_time(LEASE - SECOND)
    assert scene.store.reap(10).wait().workers == ()


def test_a_reap_shows_the_newest_renewal_of_every_worker_that_is_left(scene: Scene) -> None:
    vanished, living = scene.worker("vanished"), scene.worker("living")
    scene.pass_time(LEASE - SECOND)
    scene.store.beat(living, 2 * LEASE).wait()
    beat_at = scene.clock.now()
    scene.pass_time(SECOND)
    reaped = scene.store.reap(10).wait()
    assert reaped.workers == (vanished,)
    expected = Renewal(worker=living, beat_at=beat_at, length=2 * LEASE, left=2 * LEASE - SECOND)
    assert reaped.renewals == (expected,)
    # The same where nobody is struck off, and where no job is asked for.
    assert scene.store.reap(0, []).wait().renewals == (expected,)


def test_only_the_workers_given_are_struck_off_whatever_the_stores_clock_says(scene: Scene) -> None:
    worker, other = scene.worker("worker"), scene.worker("other")
    job = scene.running(worker)
    renewals = {renewal.worker: renewal for renewal in scene.store.reap(10).wait().renewals}
    scene.pass_time(100 * LEASE)
    assert scene.store.reap(10, []).wait().workers == ()
    reaped = scene.store.reap(10, [renewals[worker]]).wait()
    assert (reaped.workers, reaped.jobs) == ((worker,), (job,))
    assert [renewal.worker for renewal in reaped.renewals] == [other]
    assert scene.store.reap(10, [renewals[worker]]).wait().workers == ()


def test_a_worker_that_has_renewed_its_lease_since_is_not_struck_off(scene: Scene) -> None:
    worker = scene.worker()
    before = scene.store.reap(10).wait().renewals
    scene.pass_time(SECOND)
    scene.store.beat(worker, LEASE).wait()
    assert scene.store.reap(10, before).wait().workers == ()
    scene.store.beat(worker, LEASE).wait()
    now = scene.store.reap(10, []).wait().renewals
    assert scene.store.reap(10, now).wait().workers == (worker,)
