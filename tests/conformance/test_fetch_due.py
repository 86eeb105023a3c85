"""fetch with takes_due: fresh jobs that wait and are due are claimed where they wait, as if promoted just before."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.scene import LEASE, SECOND, Scene, a_want, ended, failure, success

from perdure.errors import LeaseLost
from perdure.model.job import JobId, WorkerId
from perdure.store.jobs import Fetched, Want


def take_due(scene: Scene, worker: WorkerId, *wants: Want, limit: int = 100) -> Fetched:
    return scene.store.fetch(worker, wants or [a_want()], limit, takes_due=True).wait()


def ids(fetched: Fetched) -> list[JobId]:
    return [job.id for job in fetched.jobs]


def test_what_is_due_is_claimed_where_it_waits(scene: Scene) -> None:
    worker = scene.worker()
    job_id = scene.enqueue(delay=10 * SECOND, args=b'{"n":1}', priority=3)
    due = scene.clock.now() + 10 * SECOND
    scene.pass_time(12 * SECOND)
    fetched = take_due(scene, worker)
    (job,) = fetched.jobs
    assert (fetched.due, fetched.rooms) == (1, (100,))
    assert (job.id, job.state, job.attempt, job.worker) == (job_id, "running", 1, worker)
    assert (job.run_at, job.started_at, job.args, job.priority) == (due, scene.clock.now(), b'{"n":1}', 3)
    assert scene.get(job_id) == job


# Proves [INV-16].
def test_nothing_is_claimed_before_it_is_due(scene: Scene) -> None:
    worker = scene.worker()
    job_id = scene.enqueue(delay=10 * SECOND)
    scene.pass_time(10 * SECOND - timedelta(microseconds=1))
    assert take_due(scene, worker) == Fetched(jobs=[], rooms=(0,), due=0)
    scene.pass_time(timedelta(microseconds=1))
    assert ids(take_due(scene, worker)) == [job_id]


def test_a_job_claimed_where_it_waits_ends_like_any_other(scene: Scene) -> None:
    worker = scene.worker()
    job_id = scene.enqueue(delay=SECOND, unique="once")
    scene.pass_time(SECOND)
    (job,) = take_due(scene, worker).jobs
    assert scene.enqueue(unique="once") == job_id
    (queue,) = scene.store.queues().wait()
    assert (queue.waiting, queue.ready, queue.running) == (0, 0, 1)
    assert scene.end(job, success(job))
    assert scene.get(job_id).state == "succeeded"
    assert scene.enqueue(unique="once") != job_id
    assert scene.store.promote(10).wait().count == 0


def test_what_is_ready_comes_first(scene: Scene) -> None:
    worker = scene.worker()
    late = [scene.enqueue(delay=SECOND, priority=9) for _ in range(3)]
    scene.pass_time(20 * SECOND)
    ready = [scene.enqueue(priority=-9) for _ in range(3)]
    fetched = take_due(scene, worker, limit=4)
    assert fetched.due == 1
    assert set(ids(fetched)) == {*ready, late[0]}
    assert [job.priority for job in fetched.jobs] == [9, -9, -9, -9]


def test_a_fetch_that_ready_jobs_fill_takes_nothing_that_waits(scene: Scene) -> None:
    worker = scene.worker()
    waiting = scene.enqueue(delay=SECOND)
    scene.pass_time(2 * SECOND)
    ready = [scene.enqueue() for _ in range(3)]
    fetched = take_due(scene, worker, limit=3)
    assert (ids(fetched), fetched.due) == (ready, 0)
    assert scene.get(waiting).state == "waiting"


def test_the_longest_due_are_claimed_first_up_to_the_limit(scene: Scene) -> None:
    worker = scene.worker()
    made = [scene.enqueue(delay=delay * SECOND) for delay in (3, 1, 2, 4)]
    scene.pass_time(20 * SECOND)
    assert ids(take_due(scene, worker, limit=2)) == [made[1], made[2]]
    assert ids(take_due(scene, worker, limit=2)) == [made[0], made[3]]
    assert ids(take_due(scene, worker, limit=2)) == []


def test_every_job_of_a_flood_is_claimed_once(scene: Scene) -> None:
    workers = [scene.worker(), scene.worker("worker-2")]
    jobs = [scene.new_job(delay=SECOND) for _ in range(2500)]
    scene.store.enqueue(jobs).wait()
    scene.pass_time(SECOND)
    want = a_want(fresh=700, retry=0)
    claimed: list[JobId] = []
    while page := [job for worker in workers for job in take_due(scene, worker, want, limit=700).jobs]:
        claimed += [job.id for job in page]
    assert claimed == [job.id for job in jobs]


# Proves [INV-9].
def test_what_is_to_be_tried_again_is_left_to_a_promote(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    scene.end(job, failure(job))
    fresh = scene.enqueue(delay=5 * SECOND)
    scene.pass_time(20 * SECOND)
    assert ids(take_due(scene, worker)) == [fresh]
    assert scene.get(job.id).state == "waiting"
    assert scene.store.promote(10).wait().count == 1


# Proves [INV-9].
def test_the_share_of_a_strict_retry_lane_stays_free(scene: Scene) -> None:
    worker = scene.worker()
    for _ in range(10):
        scene.enqueue(delay=SECOND)
    scene.pass_time(SECOND)
    fetched = take_due(scene, worker, a_want(fresh=6, retry=2, is_strict=True), limit=8)
    assert (len(fetched.jobs), fetched.due, fetched.rooms) == (6, 6, (8,))


def test_ready_retries_keep_their_share_beside_what_is_due(scene: Scene) -> None:
    worker = scene.worker()
    retries = scene.make_retries(worker, 10)
    for _ in range(20):
        scene.enqueue(delay=SECOND)
    scene.pass_time(SECOND)
    fetched = take_due(scene, worker, a_want(fresh=15, retry=5), limit=20)
    assert len(fetched.jobs) == 20
    assert sum(job.id in retries for job in fetched.jobs) >= 5


# Proves [INV-13].
def test_a_paused_queue_gives_nothing_that_waits(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(delay=SECOND)
    scene.pass_time(SECOND)
    scene.store.pause("mail", None).wait()
    assert take_due(scene, worker) == Fetched(jobs=[], rooms=(0,), due=0)
    scene.store.resume("mail").wait()
    assert take_due(scene, worker).due == 1


# Proves [INV-17].
def test_the_limit_of_a_queue_holds(scene: Scene) -> None:
    worker = scene.worker()
    for _ in range(5):
        scene.enqueue(delay=SECOND)
    scene.pass_time(SECOND)
    assert take_due(scene, worker, a_want(concurrency=3)).due == 3
    assert take_due(scene, worker, a_want(concurrency=3)).due == 0
    assert take_due(scene, worker, a_want(concurrency=4)).due == 1


def test_each_queue_gives_its_own(scene: Scene) -> None:
    worker = scene.worker()
    mail = [scene.enqueue(delay=SECOND) for _ in range(3)]
    other = [scene.enqueue(delay=SECOND, queue="other") for _ in range(3)]
    foreign = scene.enqueue(delay=SECOND, queue="foreign")
    scene.pass_time(SECOND)
    wants = [a_want(fresh=2, retry=0), a_want("other", fresh=2, retry=0), a_want(), a_want("other")]
    fetched = take_due(scene, worker, *wants, limit=10)
    assert ids(fetched) == [*mail, *other]
    assert (fetched.due, fetched.rooms) == (6, (2, 2, 6, 5))
    assert scene.get(foreign).state == "waiting"


def test_a_queue_that_has_nothing_ready_is_asked_for_what_is_due(scene: Scene) -> None:
    worker = scene.worker()
    ready = scene.enqueue()
    waiting = scene.enqueue(delay=SECOND, queue="other")
    scene.pass_time(SECOND)
    assert ids(take_due(scene, worker, a_want(), a_want("other"))) == [ready, waiting]


def test_a_cancelled_job_is_not_claimed_and_a_changed_one_as_it_is(scene: Scene) -> None:
    worker = scene.worker()
    gone, late = scene.enqueue(delay=SECOND), scene.enqueue(delay=SECOND)
    scene.store.cancel([gone], "not wanted").wait()
    scene.pass_time(2 * SECOND)
    assert ids(take_due(scene, worker)) == [late]


# Proves [INV-3].
def test_a_worker_without_a_lease_gets_nothing(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(delay=SECOND)
    scene.pass_time(LEASE)
    with pytest.raises(LeaseLost):
        take_due(scene, worker)
    with pytest.raises(LeaseLost):
        take_due(scene, WorkerId("nobody"))


def test_a_second_attempt_of_what_was_released_is_ready_and_counts_on(scene: Scene) -> None:
    worker = scene.worker()
    scene.enqueue(delay=SECOND)
    scene.pass_time(SECOND)
    (job,) = take_due(scene, worker).jobs
    scene.store.commit([ended(job, failure(job, state="ready", lane="fresh", delay=0 * SECOND))]).wait()
    (again,) = take_due(scene, worker).jobs
    assert (again.id, again.attempt) == (job.id, 2)
