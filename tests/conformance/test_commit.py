"""commit: fenced by (job id, attempt, worker), and what follows each kind of ending."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.scene import SECOND, Scene, an_error, death, ended, failure, success

from perdure.model.job import Job, JobId, WorkerId


def test_success_ends_the_job_with_its_result(scene: Scene) -> None:
    job = scene.running()
    scene.pass_time(5 * SECOND)
    assert scene.end(job, success(job, result=b'{"a":[1]}'))
    kept = scene.get(job.id)
    assert (kept.state, kept.result, kept.ended_at) == ("succeeded", b'{"a":[1]}', scene.clock.now())
    assert (kept.worker, kept.error, kept.reason, kept.delay) == (None, None, None, None)


@pytest.mark.parametrize("result", [None, b"", b"null", b"\xff\x00", '"é"'.encode()])
def test_a_result_comes_back_byte_for_byte(scene: Scene, result: bytes | None) -> None:
    job = scene.running()
    scene.end(job, success(job, result=result))
    assert scene.get(job.id).result == result


def test_the_note_of_a_success_is_the_jobs_reason(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, success(job, result=None, note="the result was too large"))
    assert scene.get(job.id).reason == "the result was too large"


def test_success_clears_the_error_of_an_earlier_attempt(scene: Scene) -> None:
    worker = scene.worker()
    first = scene.running(worker)
    scene.end(first, failure(first, state="ready", delay=0 * SECOND))
    (job,) = scene.fetch(worker)
    scene.end(job, success(job))
    kept = scene.get(job.id)
    assert (kept.error, kept.failures, kept.attempt) == (None, 1, 2)


def test_a_failure_waits_for_its_delay_in_the_retry_lane(scene: Scene) -> None:
    job = scene.running()
    scene.pass_time(5 * SECOND)
    assert scene.end(job, failure(job, delay=7 * SECOND))
    kept = scene.get(job.id)
    assert (kept.state, kept.lane, kept.failures, kept.reason) == ("waiting", "retry", 1, "failed")
    assert (kept.run_at, kept.delay) == (scene.clock.now() + 7 * SECOND, 7 * SECOND)
    assert (kept.worker, kept.ended_at, kept.error) == (None, None, an_error())


def test_a_failure_without_a_delay_is_ready_at_once(scene: Scene) -> None:
    job = scene.running()
    scene.pass_time(SECOND)
    scene.end(job, failure(job, state="ready", delay=timedelta(0)))
    kept = scene.get(job.id)
    assert (kept.state, kept.run_at) == ("ready", scene.clock.now())


def test_a_dead_job_keeps_its_last_error_and_reason(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, death(job, error=an_error("the last straw")))
    kept = scene.get(job.id)
    assert (kept.state, kept.reason, kept.failures) == ("dead", "exhausted", 1)
    assert (kept.error, kept.ended_at) == (an_error("the last straw"), scene.clock.now())


def test_a_snooze_keeps_the_error_of_the_failure_before(scene: Scene) -> None:
    worker = scene.worker()
    first = scene.running(worker)
    scene.end(first, failure(first, state="ready", delay=0 * SECOND))
    (job,) = scene.fetch(worker)
    scene.end(job, failure(job, verb="snooze", attempt="snoozed", reason="snoozed", failures=1, error=None))
    kept = scene.get(job.id)
    assert (kept.reason, kept.failures, kept.error) == ("snoozed", 1, an_error())


def test_a_lost_attempt_counts_a_recovery(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job, attempt="lost", reason="lost", failures=0, recoveries=1))
    kept = scene.get(job.id)
    assert (kept.failures, kept.recoveries, kept.reason) == (0, 1, "lost")


def test_a_job_that_moves_remembers_where_it_came_from(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job, queue="mail-retries"))
    kept = scene.get(job.id)
    assert (kept.queue, kept.origin) == ("mail-retries", "mail")


def test_the_origin_is_the_first_queue_however_often_a_job_moves(scene: Scene) -> None:
    worker = scene.worker()
    first = scene.running(worker)
    scene.end(first, failure(first, queue="b", state="ready", delay=0 * SECOND))
    (job,) = scene.fetch(worker, queue="b")
    scene.end(job, failure(job, queue="c"))
    kept = scene.get(job.id)
    assert (kept.queue, kept.origin) == ("c", "mail")


def test_a_job_that_stays_has_no_origin(scene: Scene) -> None:
    job = scene.running()
    scene.end(job, failure(job, queue="mail"))
    assert scene.get(job.id).origin is None


def test_parking_remembers_since_when(scene: Scene) -> None:
    worker = scene.worker(lease=timedelta(days=1))
    job = scene.running(worker)
    since = scene.clock.now()
    parked = {"verb": "park", "attempt": "parked", "reason": "parked", "failures": 0, "lane": "fresh", "error": None}
    scene.end(job, failure(job, **parked, delay=60 * SECOND))
    assert scene.get(job.id).parked_at == since
    scene.pass_time(60 * SECOND)
    scene.store.promote(1).wait()
    (job,) = scene.fetch(worker)
    assert job.parked_at == since
    scene.end(job, failure(job, **parked, delay=60 * SECOND))
    assert scene.get(job.id).parked_at == since
    scene.pass_time(60 * SECOND)
    scene.store.promote(1).wait()
    (job,) = scene.fetch(worker)
    scene.end(job, success(job))
    assert scene.get(job.id).parked_at is None


FENCES = {
    "another attempt": {"attempt": 2},
    "an attempt before": {"attempt": 0},
    "another worker": {"worker": WorkerId("someone else")},
    "another job": {"job_id": JobId("00000000-0000-7000-8000-000000000000")},
}


# Proves [INV-3].
@pytest.mark.parametrize("broken", FENCES)
@pytest.mark.parametrize("outcome_of", [success, failure, death])
def test_a_commit_whose_fence_does_not_match_changes_nothing(scene: Scene, broken: str, outcome_of: type) -> None:
    job = scene.running()
    assert not scene.end(job, outcome_of(job), **FENCES[broken])
    assert scene.get(job.id) == job
    assert [record.outcome for record in scene.store.history(job.id, 10).wait()] == ["running"]


@pytest.mark.parametrize("first", [success, failure, death])
@pytest.mark.parametrize("second", [success, failure, death])
def test_an_attempt_is_committed_once(scene: Scene, first: type, second: type) -> None:
    job = scene.running()
    assert scene.end(job, first(job))
    kept = scene.get(job.id)
    history = scene.store.history(job.id, 10).wait()
    assert not scene.end(job, second(job, reason="lost"))
    assert scene.get(job.id) == kept
    assert scene.store.history(job.id, 10).wait() == history


# Proves [INV-3].
def test_a_stale_attempt_cannot_commit_while_the_next_one_runs(scene: Scene) -> None:
    worker = scene.worker()
    stale = scene.running(worker)
    scene.end(stale, failure(stale, attempt="lost", reason="lost", state="ready", delay=0 * SECOND))
    (current,) = scene.fetch(scene.worker("worker-2"))
    assert not scene.end(stale, success(stale))
    assert scene.get(current.id) == current
    assert scene.end(current, success(current))


def test_a_job_that_never_ran_cannot_be_committed(scene: Scene) -> None:
    job = scene.get(scene.enqueue())
    now = scene.clock.now()
    assert not scene.end(job, success(job), worker=WorkerId("worker-1"), started_at=now, ended_at=now)
    assert scene.get(job.id) == job


def test_in_a_batch_each_fence_is_judged_alone(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(300)]).wait()
    jobs = scene.fetch(worker, fresh=300, retry=0, limit=300)
    outcomes = [(success, failure, death)[number % 3] for number in range(300)]
    broken = {5, 6, 7, 150, 299}
    batch = [
        ended(job, outcomes[number](job), **({"attempt": 9} if number in broken else {}))
        for number, job in enumerate(jobs)
    ]
    assert scene.store.commit(batch).wait() == [number not in broken for number in range(300)]
    states = {success: "succeeded", failure: "waiting", death: "dead"}
    for number, job in enumerate(jobs):
        wanted = "running" if number in broken else states[outcomes[number]]
        assert scene.get(job.id).state == wanted


def test_of_one_fence_twice_in_a_batch_the_first_is_accepted(scene: Scene) -> None:
    job = scene.running()
    batch = [ended(job, failure(job)), ended(job, success(job)), ended(job, death(job))]
    assert scene.store.commit(batch).wait() == [True, False, False]
    assert scene.get(job.id).state == "waiting"


def test_a_batch_of_good_fences_is_accepted_whole(scene: Scene) -> None:
    worker = scene.worker()
    scene.store.enqueue([scene.new_job() for _ in range(600)]).wait()
    jobs = scene.fetch(worker, fresh=600, retry=0, limit=600)
    results = [f'"{number}"'.encode() for number in range(600)]
    batch = [ended(job, success(job, result=result)) for job, result in zip(jobs, results, strict=True)]
    assert scene.store.commit(batch).wait() == [True] * 600
    kept: list[Job | None] = scene.store.get([job.id for job in jobs]).wait()
    assert [job.result for job in kept if job] == results


def test_an_empty_commit_is_fine(scene: Scene) -> None:
    assert scene.store.commit([]).wait() == []


# Proves [INV-11].
@pytest.mark.parametrize("outcome_of", [failure, death])
def test_an_operators_cancel_is_not_outlived_by_a_retry(scene: Scene, outcome_of: type) -> None:
    job = scene.running()
    assert scene.store.cancel([job.id], "no longer wanted").wait() == ["asked"]
    assert scene.end(job, outcome_of(job))
    kept = scene.get(job.id)
    if outcome_of is failure:
        assert (kept.state, kept.reason) == ("cancelled", "no longer wanted")
    else:
        assert (kept.state, kept.reason) == ("dead", "exhausted")
    assert (kept.is_cancelling, kept.worker, kept.ended_at) == (False, None, scene.clock.now())


def test_a_cancelled_retry_is_recorded_without_a_delay(scene: Scene) -> None:
    job = scene.running()
    scene.store.cancel([job.id], "cancelled").wait()
    scene.end(job, failure(job))
    (record,) = scene.store.history(job.id, 10).wait()
    assert (record.outcome, record.reason, record.delay) == ("failed", "failed", None)


def test_a_success_stands_even_when_a_cancel_was_asked_for(scene: Scene) -> None:
    job = scene.running()
    scene.store.cancel([job.id], "cancelled").wait()
    assert scene.end(job, success(job))
    kept = scene.get(job.id)
    assert (kept.state, kept.is_cancelling, kept.reason) == ("succeeded", False, None)


def test_a_cancelled_outcome_keeps_the_reason_of_the_request(scene: Scene) -> None:
    job = scene.running()
    scene.store.cancel([job.id], "no longer wanted").wait()
    cancelled = death(job, verb="cancel", state="cancelled", attempt="cancelled", reason="cancelled", error=None)
    scene.end(job, cancelled)
    kept = scene.get(job.id)
    assert (kept.state, kept.reason) == ("cancelled", "no longer wanted")


def test_a_handler_that_cancels_itself_ends_cancelled(scene: Scene) -> None:
    job = scene.running()
    cancelled = death(job, verb="cancel", state="cancelled", attempt="cancelled", reason="cancelled", error=None)
    assert scene.end(job, cancelled)
    kept = scene.get(job.id)
    assert (kept.state, kept.reason, kept.ended_at) == ("cancelled", "cancelled", scene.clock.now())


def test_the_reaper_commits_with_the_vanished_workers_id(scene: Scene) -> None:
    job = scene.running()
    scene.store.deregister(WorkerId("worker-1")).wait()
    assert scene.end(job, failure(job, attempt="lost", reason="lost"))
    assert scene.get(job.id).state == "waiting"


@pytest.mark.parametrize("fault", ["failed", "of another attempt", "of another worker", "nothing"])
def test_between_two_equal_successes_anything_may_stand(scene: Scene, fault: str) -> None:
    worker = scene.worker()
    for _ in range(3):
        scene.enqueue()
    first, middle, last = scene.fetch(worker)
    same = success(first, result=None)
    between = {
        "failed": ended(middle, failure(middle)),
        "of another attempt": ended(middle, same, attempt=2),
        "of another worker": ended(middle, same, worker=WorkerId("stranger")),
        "nothing": ended(middle, same),
    }[fault]
    accepted = scene.store.commit([ended(first, same), between, ended(last, same)]).wait()
    assert accepted == [True, fault in ("failed", "nothing"), True]
    became = {"failed": "waiting", "nothing": "succeeded"}.get(fault, "running")
    assert [scene.get(job.id).state for job in (first, middle, last)] == ["succeeded", became, "succeeded"]
