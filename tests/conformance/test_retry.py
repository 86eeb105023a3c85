"""retry: waiting, dead and cancelled jobs become ready now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.scene import SECOND, Scene, an_error, death, failure, success

from perdure.model.job import JobId


def test_a_waiting_job_is_ready_now_and_keeps_what_it_has_behind_it(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job, delay=timedelta(hours=1), queue="mail-retries"))
    scene.pass_time(SECOND)
    assert scene.store.retry([job.id]).wait() == ["replayed"]
    kept = scene.get(job.id)
    assert (kept.state, kept.run_at, kept.failures, kept.lane) == ("ready", scene.clock.now(), 1, "retry")
    assert (kept.queue, kept.origin) == ("mail-retries", "mail")


def test_a_waiting_job_that_never_ran_stays_fresh(scene: Scene) -> None:
    job_id = scene.enqueue(delay=SECOND)
    scene.store.retry([job_id]).wait()
    job = scene.get(job_id)
    assert (job.state, job.lane) == ("ready", "fresh")


def test_a_dead_job_starts_again_at_no_failures_in_its_origin(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, death(job, failures=4, recoveries=2, queue="mail-retries"))
    scene.pass_time(SECOND)
    assert scene.store.retry([job.id]).wait() == ["replayed"]
    kept = scene.get(job.id)
    assert (kept.state, kept.queue, kept.origin, kept.lane) == ("ready", "mail", None, "retry")
    assert (kept.failures, kept.recoveries, kept.reason, kept.ended_at) == (0, 0, None, None)
    assert (kept.run_at, kept.attempt) == (scene.clock.now(), 1)


def test_the_last_error_stays_visible_until_the_next_ending(scene: Scene) -> None:
    job_id = scene.dead(error=an_error("the last straw"))
    scene.store.retry([job_id]).wait()
    assert scene.get(job_id).error == an_error("the last straw")


def test_a_cancelled_job_that_never_ran_is_fresh_again(scene: Scene) -> None:
    job_id = scene.enqueue()
    scene.store.cancel([job_id], "cancelled").wait()
    assert scene.store.retry([job_id]).wait() == ["replayed"]
    job = scene.get(job_id)
    assert (job.state, job.lane, job.reason) == ("ready", "fresh", None)


def test_a_cancelled_retry_that_is_put_back_waits_for_nothing(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job, delay=timedelta(hours=1)))
    scene.store.cancel([job.id], "cancelled").wait()
    scene.store.retry([job.id]).wait()
    kept = scene.get(job.id)
    assert (kept.state, kept.lane, kept.delay, kept.failures) == ("ready", "retry", None, 0)


def test_a_retried_job_runs_in_its_next_attempt(scene: Scene) -> None:
    worker = scene.worker()
    job_id = scene.dead(worker)
    scene.store.retry([job_id]).wait()
    (job,) = scene.fetch(worker)
    assert (job.id, job.attempt) == (job_id, 2)
    assert [record.attempt for record in scene.store.history(job_id, 10).wait()] == [1, 2]


@pytest.mark.parametrize("state", ["ready", "running", "succeeded"])
def test_other_states_are_the_wrong_state(scene: Scene, state: str) -> None:
    worker = scene.worker()
    job_id = scene.enqueue()
    if state != "ready":
        (job,) = scene.fetch(worker)
        if state == "succeeded":
            scene.end(job, success(job))
    before = scene.get(job_id)
    assert scene.store.retry([job_id]).wait() == ["wrong state"]
    assert scene.get(job_id) == before


def test_a_dead_job_whose_unique_key_is_taken_stays_dead(scene: Scene) -> None:
    dead = scene.dead(unique="7")
    scene.enqueue(unique="7")
    before = scene.get(dead)
    assert scene.store.retry([dead]).wait() == ["unique key busy"]
    assert scene.get(dead) == before


def test_of_two_dead_jobs_with_one_key_the_first_asked_for_comes_back(scene: Scene) -> None:
    worker = scene.worker()
    one, two = scene.dead(worker, unique="7"), scene.dead(worker, unique="7")
    assert scene.store.retry([two, one]).wait() == ["replayed", "unique key busy"]


def test_a_job_that_does_not_exist_is_not_found(scene: Scene) -> None:
    assert scene.store.retry([JobId("nobody")]).wait() == ["not found"]
