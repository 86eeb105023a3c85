"""A retry queue: jobs that moved there behave as if they had stayed, and count in its retry lane."""

from __future__ import annotations

from tests.conformance.scene import SECOND, Scene, death, failure, success

from perdure.model.job import Job
from perdure.store.reads import JobFilter


def moved(scene: Scene) -> Job:
    """A job that failed in mail and now runs in its retry queue."""
    worker = scene.worker()
    job = scene.running(worker)
    assert scene.end(job, failure(job, queue="mail-retries", state="ready", delay=0 * SECOND))
    (again,) = scene.fetch(worker, queue="mail-retries")
    assert again.id == job.id
    return again


def test_a_job_that_moved_runs_in_the_retry_lane_and_shows_where_it_came_from(scene: Scene) -> None:
    again = moved(scene)
    assert (again.queue, again.origin, again.lane, again.attempt) == ("mail-retries", "mail", "retry", 2)


def test_retries_that_moved_count_in_the_retry_lane_of_their_new_queue(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    scene.end(job, failure(job, queue="mail-retries", state="ready", delay=0 * SECOND))
    fresh = scene.enqueue(queue="mail-retries")
    strict = scene.fetch(worker, queue="mail-retries", fresh=1, retry=0, is_strict=True)
    assert [one.id for one in strict] == [fresh]
    queues = {queue.name: queue for queue in scene.store.queues().wait()}
    assert queues["mail-retries"].retrying == 1
    assert scene.fetch(worker, queue="mail-retries", max_retries_running=0) == []
    assert [one.id for one in scene.fetch(worker, queue="mail-retries", fresh=1, retry=0)] == [job.id]


def test_its_success_is_like_any_other(scene: Scene) -> None:
    again = moved(scene)
    assert scene.end(again, success(again))
    kept = scene.get(again.id)
    assert (kept.state, kept.origin, kept.attempt) == ("succeeded", "mail", 2)
    assert [attempt.outcome for attempt in scene.store.history(kept.id, 10).wait()] == ["failed", "succeeded"]


def test_a_further_failure_leaves_it_there_with_its_first_origin(scene: Scene) -> None:
    again = moved(scene)
    assert scene.end(again, failure(again, state="ready", delay=0 * SECOND))
    kept = scene.get(again.id)
    assert (kept.queue, kept.origin, kept.failures) == ("mail-retries", "mail", 2)


def test_its_death_is_found_under_both_queues_and_replay_brings_it_home(scene: Scene) -> None:
    again = moved(scene)
    assert scene.end(again, death(again))
    for queue in ("mail", "mail-retries"):
        (found,) = scene.store.list(JobFilter(state="dead", queue=queue), limit=10).wait()
        assert (found.id, found.origin) == (again.id, "mail")
    assert scene.store.replay(JobFilter(queue="mail"), 10, 0 * SECOND).wait() == 1
    kept = scene.get(again.id)
    assert (kept.state, kept.queue, kept.origin, kept.lane, kept.failures) == ("ready", "mail", None, "retry", 0)
    (third,) = scene.fetch(scene.worker("worker-2"))
    assert (third.id, third.attempt) == (again.id, 3)
