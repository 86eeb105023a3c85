"""start: the record that an at-most-once job is about to enter its handler."""

from __future__ import annotations

import pytest
from tests.conformance.scene import LEASE, SECOND, Scene, a_want, failure, success

from perdure.model.job import Job, JobId, WorkerId


def claimed(scene: Scene, worker: WorkerId, number: int = 1) -> list[Job]:
    for _ in range(number):
        scene.enqueue(delivery="at_most_once")
    return scene.store.fetch(worker, [a_want()], number).wait().jobs


def start(scene: Scene, worker: WorkerId, *jobs: Job) -> list[bool]:
    return scene.store.start(worker, [(job.id, job.attempt) for job in jobs]).wait()


# Proves [INV-5].
def test_a_claimed_at_most_once_job_has_not_started(scene: Scene) -> None:
    (job,) = claimed(scene, scene.worker())
    assert (job.state, job.attempt, job.started_at) == ("running", 1, None)
    assert scene.get(job.id) == job


def test_a_claimed_at_least_once_job_has_started(scene: Scene) -> None:
    scene.enqueue(task="at_most_once")
    (job,) = scene.store.fetch(scene.worker(), [a_want()], 1).wait().jobs
    assert job.started_at == scene.clock.now()
    assert scene.get(job.id) == job


def test_a_start_is_recorded_with_its_time(scene: Scene) -> None:
    worker = scene.worker()
    first, second, third = claimed(scene, worker, 3)
    scene.pass_time(SECOND)
    assert start(scene, worker, third, first) == [True, True]
    assert scene.get(first.id).started_at == scene.clock.now()
    assert scene.get(second.id).started_at is None
    assert scene.get(third.id).started_at == scene.clock.now()


def test_a_repeated_start_is_answered_alike(scene: Scene) -> None:
    worker = scene.worker()
    (job,) = claimed(scene, worker)
    assert start(scene, worker, job) == [True]
    assert start(scene, worker, job) == [True]


def test_no_attempts_are_no_starts(scene: Scene) -> None:
    assert start(scene, scene.worker()) == []


# Proves [INV-3].
def test_only_the_current_attempt_of_the_worker_that_claimed_it_may_start(scene: Scene) -> None:
    worker, other = scene.worker(), scene.worker("worker-2")
    (job,) = claimed(scene, worker)
    ready = scene.enqueue(delivery="at_most_once")
    assert start(scene, other, job) == [False]
    stale = [(job.id, 0), (job.id, 2), (ready, 0), (ready, 1), (JobId("no-such-job"), 1)]
    assert scene.store.start(worker, stale).wait() == [False] * 5
    assert scene.get(job.id).started_at is None
    assert scene.get(ready).state == "ready"


def test_an_ended_job_cannot_start(scene: Scene) -> None:
    worker = scene.worker()
    (job,) = claimed(scene, worker)
    assert scene.end(job, success(job))
    ended_job = scene.get(job.id)
    assert start(scene, worker, job) == [False]
    assert scene.get(job.id) == ended_job


# Proves [INV-7].
def test_nothing_starts_after_the_worker_was_struck_off(scene: Scene) -> None:
    worker = scene.worker()
    (job,) = claimed(scene, worker)
    scene.pass_time(LEASE)
    assert scene.store.reap(10).wait().jobs == (scene.get(job.id),)
    assert start(scene, worker, job) == [False]
    assert scene.get(job.id).started_at is None


def test_a_reap_shows_which_jobs_had_started(scene: Scene) -> None:
    worker = scene.worker()
    entered, waiting = claimed(scene, worker, 2)
    start(scene, worker, entered)
    scene.pass_time(LEASE)
    jobs = {job.id: job for job in scene.store.reap(10).wait().jobs}
    assert jobs[entered.id].started_at is not None
    assert jobs[waiting.id].started_at is None


def test_the_next_claim_of_a_released_job_has_not_started_either(scene: Scene) -> None:
    worker = scene.worker()
    (job,) = claimed(scene, worker)
    start(scene, worker, job)
    scene.end(job, failure(job, state="ready", lane="fresh", delay=0 * SECOND))
    (again,) = scene.store.fetch(worker, [a_want()], 1).wait().jobs
    assert (again.id, again.attempt, again.started_at) == (job.id, 2, None)
    assert start(scene, worker, again) == [True]


@pytest.mark.parametrize("number", [999, 2500])
def test_a_large_batch_starts_at_once(scene: Scene, number: int) -> None:
    worker = scene.worker()
    jobs: list[Job] = []
    scene.store.enqueue([scene.new_job(delivery="at_most_once") for _ in range(number)]).wait()
    while page := scene.store.fetch(worker, [a_want(fresh=1000, retry=0)], 1000).wait().jobs:
        jobs += page
    assert start(scene, worker, *jobs) == [True] * number
