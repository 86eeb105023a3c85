"""The checker sees what it is there to see: every kind of doctored ledger or store makes it complain, by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from tests.chaos.checker import check
from tests.chaos.ledger import Event, Ledger, read

from perdure import Attempt, Job
from perdure.model.job import JobId

Scene = tuple[list[Event], list[Job], dict[str, list[Attempt]]]


def an_event(kind: str, at: float, **fields: object) -> Event:
    return replace(Event(event=kind, at=at, wall=at, pid=1), **fields)  # type: ignore[arg-type]


def a_job(job_id: str, state: str = "succeeded", attempt: int = 1, ended_at: float | None = 100.0) -> Job:
    return Job(
        id=JobId(job_id),
        task="work",
        queue="default",
        state=state,  # type: ignore[arg-type]
        lane="fresh",
        args=json.dumps({"args": [f"key-{job_id}"]}).encode(),
        priority=0,
        run_at=datetime.fromtimestamp(0, UTC),
        attempt=attempt,
        failures=attempt - 1,
        recoveries=0,
        delivery="at_least_once",
        created_at=datetime.fromtimestamp(0, UTC),
        ended_at=None if ended_at is None else datetime.fromtimestamp(ended_at, UTC),
    )


def enqueued(job_id: str, *, batch: str = "", **fields: object) -> list[Event]:
    key = f"key-{job_id}"
    invoke = an_event("enq_invoke", 1.0, **{"key": key, "batch": batch, "limit": 3, **fields})
    return [invoke, an_event("enq_ok", 2.0, key=key, job=job_id)]


def a_run(job_id: str, attempt: int, at: float, note: str = "returns") -> list[Event]:
    start = an_event("start", at, job=job_id, attempt=attempt)
    effect = [an_event("effect", at + 1, job=job_id, attempt=attempt)] if note == "returns" else []
    return [start, *effect, an_event("end", at + 2, job=job_id, attempt=attempt, note=note)]


def a_clean_scene() -> Scene:
    """Two jobs: one succeeded at its second attempt, one is dead after one."""
    events = [
        *enqueued("a"),
        *enqueued("b", delivery="at_most_once"),
        *a_run("a", 1, 10.0, "raises"),
        *a_run("a", 2, 20.0),
        *a_run("b", 1, 30.0, "raises"),
    ]
    jobs = [a_job("a", attempt=2), a_job("b", "dead")]
    histories = {
        "a": [
            Attempt(job_id=JobId("a"), attempt=1, outcome="failed"),
            Attempt(job_id=JobId("a"), attempt=2, outcome="succeeded"),
        ]
    }
    return events, jobs, histories


def without(events: list[Event], kind: str, job_id: str) -> list[Event]:
    return [event for event in events if not (event.event == kind and event.job == job_id)]


def test_clean_books_raise_no_complaint() -> None:
    verdict = check(*a_clean_scene())
    assert verdict.problems() == {}
    assert (verdict.invoked, verdict.accepted, verdict.recovered, verdict.starts) == (2, 2, 0, 3)


def a_missing_job(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return events, jobs[:1], histories


def an_unfinished_job(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return events, [jobs[0], a_job("b", "ready", ended_at=None)], histories


def a_job_from_nowhere(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return events, [*jobs, a_job("c", "dead")], histories


def a_run_of_an_unknown_job(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return [*events, *a_run("c", 1, 40.0)], jobs, histories


def one_request_two_jobs(scene: Scene) -> Scene:
    events, jobs, histories = scene
    twin = msgspec.structs.replace(jobs[1], id=JobId("c"))
    return events, [*jobs, twin], histories


def half_a_batch(scene: Scene) -> Scene:
    events, jobs, histories = scene
    whole = enqueued("c", batch="batch")[:1] + enqueued("d", batch="batch")[:1]
    return [*events, *whole], [*jobs, a_job("c", "dead")], histories


def a_second_start_at_most_once(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return [*events, *a_run("b", 2, 40.0, "raises")], jobs, histories


def a_run_too_many(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return [*events, *a_run("a", 3, 40.0), *a_run("a", 4, 50.0)], jobs, histories


def one_attempt_started_twice(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return [*events, *a_run("a", 2, 22.0)], jobs, histories


def a_start_after_the_end(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return [*events, *a_run("a", 3, 101.0)], jobs, histories


def a_success_that_nobody_ran(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return without(events, "end", "a"), jobs, histories


def a_success_of_a_run_that_raised(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return events, [jobs[0], a_job("b")], histories


def a_gap_in_the_history(scene: Scene) -> Scene:
    events, jobs, histories = scene
    return events, jobs, {"a": histories["a"][1:]}


def an_attempt_still_running_in_the_history(scene: Scene) -> Scene:
    events, jobs, histories = scene
    running = msgspec.structs.replace(histories["a"][1], outcome="running")
    return events, jobs, {"a": [histories["a"][0], running]}


@pytest.mark.parametrize(
    ("doctor", "complaint"),
    [
        (a_missing_job, "lost"),
        (an_unfinished_job, "lost"),
        (a_missing_job, "unbalanced"),
        (an_unfinished_job, "unbalanced"),
        (a_job_from_nowhere, "unexpected"),
        (a_job_from_nowhere, "unbalanced"),
        (a_run_of_an_unknown_job, "unexpected"),
        (one_request_two_jobs, "doubled"),
        (half_a_batch, "torn_batches"),
        (a_second_start_at_most_once, "at_most_once_again"),
        (a_run_too_many, "over_limit"),
        (one_attempt_started_twice, "same_attempt"),
        (a_start_after_the_end, "after_end"),
        (a_success_that_nobody_ran, "unproven"),
        (a_success_of_a_run_that_raised, "unproven"),
        (a_gap_in_the_history, "bad_history"),
        (an_attempt_still_running_in_the_history, "bad_history"),
    ],
)
def test_doctored_books_raise_a_complaint(doctor: Callable[[Scene], Scene], complaint: str) -> None:
    assert complaint in check(*doctor(a_clean_scene())).problems()


def test_an_enqueue_without_an_answer_is_unknown_and_not_a_complaint() -> None:
    events, jobs, histories = a_clean_scene()
    verdict = check([*events, *enqueued("c")[:1]], jobs, histories)
    assert verdict.problems() == {}
    assert (verdict.invoked, verdict.accepted, verdict.recovered) == (3, 2, 0)


def test_a_job_whose_enqueue_was_never_answered_counts_as_recovered() -> None:
    events, jobs, histories = a_clean_scene()
    verdict = check([*events, *enqueued("c")[:1]], [*jobs, a_job("c", "dead")], histories)
    assert verdict.problems() == {}
    assert verdict.recovered == 1


def test_a_recovered_job_must_end_like_any_other() -> None:
    events, jobs, histories = a_clean_scene()
    verdict = check([*events, *enqueued("c")[:1]], [*jobs, a_job("c", "ready", ended_at=None)], histories)
    assert "unbalanced" in verdict.problems()


def test_overlapping_and_interrupted_runs_are_counted() -> None:
    events, jobs, histories = a_clean_scene()
    cut = an_event("start", 19.0, job="a", attempt=3)
    late = a_run("a", 4, 21.0)
    verdict = check(sorted([*events, cut, *late], key=lambda event: event.at), jobs, histories)
    assert (verdict.cut_short, verdict.overlaps, verdict.duplicates) == (1, 1, 1)


def test_a_line_torn_by_a_kill_is_no_event_and_hides_no_other(tmp_path: Path) -> None:
    Ledger(tmp_path).write("start", job="a", attempt=1)
    Ledger(tmp_path).write("start", job="b", attempt=1)
    first = min(tmp_path.iterdir())
    with first.open("ab") as file:
        file.write(b'{"event": "end", "at": 1')
    assert [event.job for event in read(tmp_path)] == ["a", "b"]
