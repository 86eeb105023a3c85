"""history: one record per attempt, whatever became of it."""

from __future__ import annotations

from tests.conformance.scene import SECOND, Scene, an_error, death, failure, success

from perdure.model.job import JobId


def test_a_job_that_never_ran_has_no_history(scene: Scene) -> None:
    assert scene.store.history(scene.enqueue(), 10).wait() == []
    assert scene.store.history(JobId("nobody"), 10).wait() == []


def test_a_running_attempt_is_in_it(scene: Scene) -> None:
    job = scene.running()
    (record,) = scene.store.history(job.id, 10).wait()
    assert (record.attempt, record.outcome, record.worker) == (1, "running", job.worker)
    assert (record.started_at, record.ended_at, record.error) == (job.started_at, None, None)


def test_a_success_has_the_times_that_the_worker_saw(scene: Scene) -> None:
    job = scene.running()
    started, stopped = scene.clock.now() + SECOND, scene.clock.now() + 3 * SECOND
    scene.pass_time(10 * SECOND)
    scene.end(job, success(job, note="a note"), started_at=started, ended_at=stopped)
    (record,) = scene.store.history(job.id, 10).wait()
    assert (record.outcome, record.started_at, record.ended_at) == ("succeeded", started, stopped)
    assert (record.reason, record.error, record.delay) == ("a note", None, None)


def test_a_failure_has_its_error_its_times_and_the_delay_that_followed(scene: Scene) -> None:
    job = scene.running()
    started, stopped = scene.clock.now() + SECOND, scene.clock.now() + 3 * SECOND
    scene.end(job, failure(job, delay=9 * SECOND), started_at=started, ended_at=stopped)
    (record,) = scene.store.history(job.id, 10).wait()
    assert (record.attempt, record.outcome, record.reason) == (1, "failed", "failed")
    assert (record.error, record.worker, record.delay) == (an_error(), job.worker, 9 * SECOND)
    assert (record.started_at, record.ended_at) == (started, stopped)


def test_every_attempt_has_one_record_oldest_first(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    again = {"state": "ready", "delay": 0 * SECOND}
    endings = [
        failure(job, **again),
        failure(job, **again, attempt="timeout", reason="timeout"),
        failure(job, **again, attempt="lost", reason="lost"),
        failure(job, **again, verb="snooze", attempt="snoozed", reason="snoozed", error=None),
        failure(job, **again, verb="release", attempt="released", reason="released", error=None),
        failure(job, **again, verb="park", attempt="parked", reason="parked", error=None),
    ]
    for ending in endings:
        assert scene.end(job, ending)
        (job,) = scene.fetch(worker)
    outcomes = [record.outcome for record in scene.store.history(job.id, 99).wait()]
    assert outcomes == ["failed", "timeout", "lost", "snoozed", "released", "parked", "running"]
    scene.end(job, success(job))
    records = scene.store.history(job.id, 99).wait()
    assert [record.outcome for record in records] == [*outcomes[:-1], "succeeded"]
    assert [record.attempt for record in records] == [1, 2, 3, 4, 5, 6, 7]
    assert {record.job_id for record in records} == {job.id}


def test_the_final_failure_is_in_it(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, death(job, error=an_error("the last straw")))
    (record,) = scene.store.history(job.id, 10).wait()
    assert (record.outcome, record.reason, record.error) == ("failed", "exhausted", an_error("the last straw"))


def test_the_newest_are_kept_when_there_are_more_than_the_limit(scene: Scene) -> None:
    worker = scene.worker()
    job = scene.running(worker)
    for _ in range(4):
        scene.end(job, failure(job, state="ready", delay=0 * SECOND))
        (job,) = scene.fetch(worker)
    assert [record.attempt for record in scene.store.history(job.id, 2).wait()] == [4, 5]
    assert [record.attempt for record in scene.store.history(job.id, 1).wait()] == [5]
    scene.end(job, death(job))
    assert [record.attempt for record in scene.store.history(job.id, 2).wait()] == [4, 5]
