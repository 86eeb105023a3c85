"""What is said in the log: a line per attempt that did not simply succeed and per change of a worker, none per success.

Payloads and secrets never appear.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

from perdure.model.event import (
    AttemptEnded,
    CommitLost,
    Event,
    Forwarded,
    ForwardFailed,
    JobsEnqueued,
    LeaseExpired,
    ScheduleBroken,
    StoreRecovered,
    StoreTrouble,
    TicksFired,
    WorkerReaped,
    WorkerStarted,
    WorkerStopped,
)
from perdure.model.failure import clean
from perdure.model.job import is_job_id
from perdure.model.payload.redaction import Redactor
from perdure.observe.log_stream import Line, write
from perdure.text.duration import format_duration
from perdure.text.plural import plural

_ROUNDED = timedelta(milliseconds=1)
_ROUGH = timedelta(seconds=1)
_LONG = timedelta(seconds=10)
_SENTENCE = 200
"""How much of an error's first line is said."""


class LogObserver:
    """Tells events to the logger `perdure`, without the secrets that error messages may have in them."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor()

    def tell(self, event: Event) -> None:
        if type(event) is not JobsEnqueued:  # of which nothing is said
            self.tell_all((event,))

    def tell_all(self, events: Sequence[Event]) -> None:
        plain = None
        lines = []
        for event in events:
            if type(event) is AttemptEnded:
                # Nothing is said of a plain success; most are, and then most are the same value.
                outcome = event.outcome
                if outcome is plain:
                    continue
                if outcome.state == "succeeded" and outcome.note is None:
                    plain = outcome
                    continue
            line = _line(event, self._redactor)
            if line is not None:
                lines.append(line)
        if lines:
            write(lines)


def _line(event: Event, redactor: Redactor) -> Line | None:
    match event:
        case AttemptEnded():
            return _attempt(event, redactor)
        case JobsEnqueued():
            return None
        case CommitLost(job=job, outcome=outcome):
            fields: dict[str, object] = {"event": "commit_lost", **_names(job.id, job.schedule)}
            fields.update(task=job.task, queue=job.queue, attempt=job.attempt, outcome=outcome.attempt)
            text = f"Job {_shown_id(job.id, job.schedule)} moved on before attempt {job.attempt} could be recorded"
            text += f"; nothing was changed{_run(job.id, job.schedule)}"
            return logging.WARNING, text, fields
        case Forwarded(job=job_id, task=task, queue=queue, sink=sink, tries=tries, schedule=schedule):
            fields = {"event": "forwarded", **_names(job_id, schedule), "task": task, "queue": queue}
            fields.update(sink=sink, tries=tries)
            text = f"Dead job {_shown_id(job_id, schedule)} was handed to {sink}{_run(job_id, schedule)}"
            return logging.INFO, text, fields
        case ForwardFailed():
            return _forward_failed(event, redactor)
        case WorkerStarted(worker=worker, queues=queues, concurrency=concurrency):
            fields = {"event": "worker_started", "worker": worker}
            text = f"Worker {worker} serves {', '.join(queues)} with {plural(concurrency, 'slot')}"
            return logging.INFO, text, fields
        case WorkerStopped(worker=worker, released=released):
            fields = {"event": "worker_stopped", "worker": worker, "released": released}
            text = f"Worker {worker} stopped; {plural(released, 'job')} {_were(released)} given back"
            return logging.INFO, text, fields
        case LeaseExpired(worker=worker, held=held):
            fields = {"event": "lease_lost", "worker": worker, "held": held}
            text = f"Worker {worker} lost its lease and dropped {plural(held, 'job')}; it registers anew"
            return logging.ERROR, text, fields
        case WorkerReaped(worker=worker, jobs=jobs):
            fields = {"event": "worker_reaped", "worker": worker, "jobs": jobs}
            text = f"Worker {worker} vanished; its {plural(jobs, 'job')} {_were(jobs)} recovered"
            return logging.WARNING, text, fields
        case StoreTrouble(part=part, error=error, retry_in=retry_in):
            error = redactor.text(error)
            fields = {"event": "store_trouble", "part": part, "error": error}
            text = f"The {part} cannot reach the store and keeps trying (next in {format_duration(retry_in)}): {error}"
            return logging.ERROR, text, fields
        case StoreRecovered(part=part, outage=outage):
            fields = {"event": "store_recovered", "part": part, "outage": outage.total_seconds()}
            return logging.WARNING, f"The {part} reaches the store again after {_rounded(outage)}", fields
        case TicksFired(schedule=schedule, ticks=ticks, skipped=skipped):
            if skipped == 0:
                return None
            fields = {"event": "ticks_skipped", "schedule": schedule, "fired": len(ticks), "skipped": skipped}
            text = f"Schedule {schedule}: {plural(skipped, 'tick')} {_were(skipped)} skipped"
            return logging.INFO, text, fields
        case ScheduleBroken(schedule=schedule, problem=problem):
            fields = {"event": "schedule_broken", "schedule": schedule, "problem": problem}
            return logging.ERROR, f"Schedule {schedule} does not fire: {clean(problem, 300)}", fields
        case _:
            assert_never(event)


def _attempt(event: AttemptEnded, redactor: Redactor) -> Line:
    job, outcome = event.job, event.outcome
    fields: dict[str, object] = {
        "event": f"attempt_{outcome.attempt}",
        **_names(job.id, job.schedule),
        "task": job.task,
        "queue": job.queue,
        "attempt": job.attempt,
        "state": outcome.state,
        "reason": outcome.reason,
        "failures": outcome.failures,
        "max_attempts": _limit(event),
    }
    why = ""
    if outcome.error is not None:
        text = redactor.text(str(outcome.error))
        fields["error"] = error = clean(text, 300)
        first = text.partition("\n")[0]
        # Most errors are one short line, which is clean.
        why = f": {first if first == error and len(first) <= _SENTENCE else clean(first, _SENTENCE)}"
    if outcome.delay is not None:
        fields["delay"] = outcome.delay.total_seconds()
    if event.next_tick_at is not None:
        fields["next_tick_at"] = event.next_tick_at.isoformat()
    level = logging.ERROR if outcome.state == "dead" else logging.WARNING
    if outcome.attempt in ("released", "snoozed") or outcome.state in ("succeeded", "cancelled"):
        level = logging.INFO
    return level, _sentence(event, why), fields


def _forward_failed(event: ForwardFailed, redactor: Redactor) -> Line:
    error = clean(redactor.text(event.error), 300)
    fields: dict[str, object] = {
        "event": "forward_failed",
        **_names(event.job, event.schedule),
        "task": event.task,
        "queue": event.queue,
        "sink": event.sink,
        "tries": event.tries,
        "error": error,
    }
    then = "no further one by itself" if event.retry_in is None else f"next in {_rounded(event.retry_in)}"
    name, run = _shown_id(event.job, event.schedule), _run(event.job, event.schedule)
    what = f"Dead job {name} could not be handed to {event.sink} (try {event.tries}, {then})"
    text = f"{what}; it stays dead here{run}: {error}"
    return logging.ERROR, text, fields


def _names(job_id: str, schedule: str | None) -> dict[str, object]:
    """The ids in a line's fields: the job as its maker knows it, and its run where it was made with a schedule."""
    if schedule is None:
        return {"job": job_id}
    if not is_job_id(schedule):
        return {"job": job_id, "schedule": schedule}
    return {"job": schedule, "run": job_id, "schedule": schedule}


def _shown_id(job_id: str, schedule: str | None) -> str:
    """The id under which the job's maker knows it: that of the scheduled job, where it is a run of one."""
    return schedule if schedule is not None and is_job_id(schedule) else job_id


def _run(job_id: str, schedule: str | None) -> str:
    """The id of the run, where the job's maker knows another one."""
    return "" if _shown_id(job_id, schedule) == job_id else f" [run {job_id}]"


def _sentence(event: AttemptEnded, why: str) -> str:
    job, outcome = event.job, event.outcome
    name = _shown_id(job.id, job.schedule)
    why = f"{_run(job.id, job.schedule)}{why}"
    match outcome.state:
        case "waiting" | "ready" if outcome.verb == "fail":
            delay = outcome.delay or timedelta(0)
            count = f"{outcome.failures}/{_limit(event) - 1}" if outcome.failures else "without counting it"
            return (
                f"Job {name} failed, scheduling retry {count} in {_rounded(delay)} "
                f"(at {_clock_time(event.ended_at + delay)}){why}"
            )
        case "waiting" | "ready":
            return f"Job {name} was {outcome.attempt} and will run again{why}"
        case "dead" if event.next_tick_at is not None:
            return (
                f"Job {name} failed after {_retries(event)}, rescheduled for next occurrence: "
                f"{_clock_time(event.next_tick_at)}; this one is dead ({outcome.reason}){why}"
            )
        case "dead" if outcome.reason in ("exhausted", "timeout", "lost"):
            return f"Job {name} failed after {_retries(event)}, dead ({outcome.reason}){why}"
        case "dead":
            return f"Job {name} is dead ({outcome.reason}){why}"
        case "cancelled":
            return f"Job {name} was cancelled{why}"
        case _:
            return f"Job {name} succeeded; {outcome.note}{why}"


def _retries(event: AttemptEnded) -> str:
    return plural(max(0, event.outcome.failures - 1), "retry")


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _limit(event: AttemptEnded) -> int:
    """The limit that the decision was made with."""
    return event.limit if event.outcome.limit is None else event.outcome.limit


def _rounded(delay: timedelta) -> str:
    if not delay:
        return "0s"
    step = _ROUNDED if delay < _LONG else _ROUGH
    return format_duration(round(delay / step) * step)


def _clock_time(moment: datetime) -> str:
    return moment.isoformat(" ", "seconds")[:19]
