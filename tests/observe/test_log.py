"""Log lines: the wording, the limit that was decided with, the fields of JSON, and nothing of a job's payload."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs
from tests.observe.told import JOB, NOW, a_job, a_new_job, attempt, raised

from perdure import Retry
from perdure.model.event import (
    AttemptEnded,
    CommitLost,
    Event,
    Forwarded,
    ForwardFailed,
    JobsEnqueued,
    LeaseExpired,
    StoreRecovered,
    StoreTrouble,
    TicksFired,
    WorkerReaped,
    WorkerStarted,
    WorkerStopped,
)
from perdure.model.outcome import Cancelled, GaveUp, Returned, ShutDown, Snoozed, TaskUnknown, TimedOut, Vanished
from perdure.observe.log import LogObserver
from perdure.observe.log_stream import configure

CANARY = "kanarienvogel"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger = logging.getLogger("perdure")
    kept = (logger.handlers[:], logger.level, logger.propagate)
    yield
    logger.handlers[:], logger.propagate = kept[0], kept[2]
    logger.setLevel(kept[1])


def lines(*events: Event, form: str = "console") -> list[str]:
    stream = io.StringIO()
    configure("json" if form == "json" else "console", stream)
    LogObserver().tell_all(events)
    return stream.getvalue().splitlines()


def message(event: Event) -> str:
    (line,) = lines(event)
    return line.split(" ", 3)[3].strip()


def test_a_retry_is_told_in_the_words_that_operators_know() -> None:
    event = attempt(raised(), wait=timedelta(0), took=timedelta(0))
    assert message(event).startswith(f"Job {JOB} failed, scheduling retry 1/3 in 1s (at 2024-01-01 12:00:01)")
    event = attempt(raised(), wait=timedelta(0), took=timedelta(seconds=1), attempt=2, failures=1)
    assert message(event).startswith(f"Job {JOB} failed, scheduling retry 2/3 in 2s (at 2024-01-01 12:00:03)")


def test_the_end_after_the_last_retry_is_told_with_how_many_there_were() -> None:
    event = attempt(raised(), attempt=4, failures=3)
    assert message(event) == f"Job {JOB} failed after 3 retries, dead (exhausted): ValueError: it broke"


def test_the_limit_that_is_told_is_the_one_that_a_rule_for_the_error_lowered() -> None:
    rules = Retry.preset("scheduler").on(ValueError, Retry.fixed("1s", jitter="none", max_attempts=2))
    first = attempt(raised(), retry=rules)
    assert "scheduling retry 1/1 in 1s" in message(first)
    (line,) = lines(first, form="json")
    assert json.loads(line)["max_attempts"] == 2
    last = attempt(raised(), retry=rules, attempt=2, failures=1)
    assert message(last).startswith(f"Job {JOB} failed after 1 retry, dead (exhausted)")
    other = attempt(raised("OSError"), retry=rules)
    assert "scheduling retry 1/3 in 1s" in message(other)


SCHEDULED = "01890a5d-0000-7000-8000-000000000001"
NEXT = datetime(2024, 1, 1, 13, tzinfo=UTC)


def test_a_run_of_a_recurring_job_is_named_with_the_id_of_the_job_and_its_own() -> None:
    failed = attempt(raised(), schedule=SCHEDULED, wait=timedelta(0), took=timedelta(0))
    said = f"Job {SCHEDULED} failed, scheduling retry 1/3 in 1s (at 2024-01-01 12:00:01) [run {JOB}]: ValueError"
    assert message(failed).startswith(said)
    died = structs.replace(attempt(raised(), attempt=4, failures=3, schedule=SCHEDULED), next_tick_at=NEXT)
    said = f"Job {SCHEDULED} failed after 3 retries, rescheduled for next occurrence: 2024-01-01 13:00:00"
    assert message(died).startswith(said)
    (line,) = lines(died, form="json")
    found = json.loads(line)
    assert (found["job"], found["run"], found["schedule"]) == (SCHEDULED, JOB, SCHEDULED)


def test_every_line_about_a_run_has_both_ids() -> None:
    about = [event for event in everything(schedule=SCHEDULED) if isinstance(event, AttemptEnded | CommitLost)]
    about.append(Forwarded(job=JOB, task="send", queue="mail", sink="archive", schedule=SCHEDULED))
    about.append(ForwardFailed(job=JOB, task="send", queue="mail", sink="archive", error="refused", schedule=SCHEDULED))
    found = lines(*about)
    assert len(found) == len(about)
    assert all(f"ob {SCHEDULED} " in line and f"[run {JOB}]" in line for line in found)


def test_the_only_run_of_a_one_shot_job_is_named_once() -> None:
    said = message(attempt(raised(), schedule=JOB, attempt=4, failures=3))
    assert said.startswith(f"Job {JOB} failed after 3 retries, dead (exhausted): ")
    (line,) = lines(attempt(raised(), schedule=JOB), form="json")
    assert (json.loads(line)["job"], json.loads(line)["run"]) == (JOB, JOB)


def test_a_job_of_a_named_schedule_is_named_by_its_own_id() -> None:
    event = attempt(raised(), schedule="nightly")
    assert message(event).startswith(f"Job {JOB} failed, scheduling retry 1/3")
    (line,) = lines(event, form="json")
    found = json.loads(line)
    assert (found["job"], found["schedule"], "run" in found) == (JOB, "nightly", False)


def test_counts_agree_with_their_nouns() -> None:
    assert message(WorkerReaped(worker="w", jobs=1)) == "Worker w vanished; its 1 job was recovered"
    assert message(WorkerReaped(worker="w", jobs=2)) == "Worker w vanished; its 2 jobs were recovered"
    assert message(WorkerStopped(worker="w", released=1)).endswith("; 1 job was given back")
    assert message(WorkerStopped(worker="w", released=0)).endswith("; 0 jobs were given back")
    assert message(WorkerStarted(worker="w", queues=("mail",), concurrency=1)).endswith("with 1 slot")
    assert "dropped 1 job;" in message(LeaseExpired(worker="w", held=1))
    skipped = TicksFired(schedule="nightly", ticks=(), skipped=1, fired_at=NOW)
    assert message(skipped) == "Schedule nightly: 1 tick was skipped"
    assert message(attempt(raised(), retry=Retry.fixed("1s", max_attempts=1))).startswith(
        f"Job {JOB} failed after 0 retries, dead"
    )


def test_a_success_and_an_enqueue_are_no_news() -> None:
    enqueued = JobsEnqueued(jobs=[a_new_job()], ids=[JOB], started_at=NOW, ended_at=NOW)
    assert lines(attempt(), enqueued) == []


def test_json_has_one_object_a_line_with_what_searches_need() -> None:
    (line,) = lines(attempt(raised(), attempt=2, failures=1), form="json")
    found = json.loads(line)
    wanted = {"event": "attempt_failed", "job": JOB, "task": "send", "queue": "mail", "attempt": 2, "failures": 2}
    wanted |= {"state": "waiting", "reason": "failed", "max_attempts": 4, "delay": 2.0, "level": "warning"}
    assert {name: found[name] for name in wanted} == wanted
    assert found["error"] == "ValueError: it broke"


def everything(**changes: object) -> list[Event]:
    """One of each event, about a job with these changes."""
    ends = [Returned(result=CANARY.encode(), note="its result was too large"), raised(), TaskUnknown(), Cancelled()]
    ends += [TimedOut(timeout=timedelta(seconds=1)), Snoozed(delay=timedelta(seconds=1)), ShutDown(has_started=True)]
    ends += [Vanished(detail="gone"), GaveUp(error=raised().error)]
    return [
        *(attempt(end, **changes) for end in ends),
        attempt(raised(), attempt=4, failures=3, **changes),
        CommitLost(job=a_job(**changes), outcome=attempt().outcome),
        JobsEnqueued(jobs=[a_new_job(args=CANARY.encode())], ids=[JOB], started_at=NOW, ended_at=NOW),
        WorkerStarted(worker="w", queues=("mail",), concurrency=5),
        WorkerStopped(worker="w", released=1),
        LeaseExpired(worker="w", held=1),
        WorkerReaped(worker="w", jobs=1),
        StoreTrouble(part="fetcher", error="down", retry_in=timedelta(seconds=1)),
        StoreRecovered(part="fetcher", outage=timedelta(seconds=1)),
        ForwardFailed(job=JOB, task="send", queue="mail", sink="archive", error="refused"),
    ]


@pytest.mark.parametrize("form", ["console", "json"])
def test_no_argument_header_result_or_unique_key_of_a_job_is_ever_logged(form: str) -> None:
    secret = json.dumps({"headers": {"Authorization": CANARY}, "body": CANARY}).encode()
    events = everything(args=secret, unique=CANARY, result=CANARY.encode())
    written = lines(*events, form=form)
    assert len(written) == len(events) - 1, "all but the enqueue have a line"
    assert not [line for line in written if CANARY in line]


def test_every_line_of_json_is_one_object_and_names_its_event() -> None:
    for line in lines(*everything(), form="json"):
        assert {"time", "level", "message", "event"} <= set(json.loads(line))


def test_a_message_with_line_ends_and_escapes_stays_on_one_harmless_line() -> None:
    (line,) = lines(attempt(raised(message="first\n\x1b[31mforged line")))
    assert "\x1b" not in line
    assert "forged" not in line
