"""One job as a person needs to see it: state and why, attempts with errors and delays, arguments, what to do next."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from perdure.admin import inspect
from perdure.admin.document import attempt_document, forward_document, job_document, moment
from perdure.admin.payload_view import PayloadView
from perdure.admin.scheduled import ScheduledJob
from perdure.admin.schedules import description
from perdure.cli import output
from perdure.cli.session import Session
from perdure.model.forward import Forward
from perdure.model.job import Attempt, Job
from perdure.model.policy.limit import HIGHEST_LIMIT
from perdure.model.schedule.definition import Schedule
from perdure.store import Store

_TRACE_LINES = 12


def show_job(session: Session, store: Store, job_id: str, view: PayloadView) -> None:
    """Print everything about a job; of one that was made with a schedule, over all of its runs."""
    found = inspect.look_up(store, job_id).wait()
    now = store.now().wait()
    scheduled = found if isinstance(found, ScheduledJob) else None
    job = found.as_job(now) if isinstance(found, ScheduledJob) else found
    run_id = job.id if scheduled is None or scheduled.run is None else scheduled.run.id
    attempts = inspect.history(store, job_id, 100).wait()
    forward = store.forwards([run_id]).wait().get(run_id) if job.state == "dead" else None
    why = inspect.why(store, job).wait()
    schedule = None if scheduled is None or scheduled.is_ended else scheduled.schedule
    steps = _next_steps(job, forward)
    if scheduled is not None and job.state == "waiting" and job.attempt == 0:
        steps = _steps_between_runs(scheduled)
    if session.is_json:
        session.emit(
            {
                **job_document(job, view),
                "forward": forward_document(forward, view),
                "why": why,
                "attempts": [_attempt_document(attempt, job, view) for attempt in attempts],
                **({} if scheduled is None else _scheduled_document(scheduled, schedule)),
                "next": steps,
            }
        )
        return
    facts = _facts(job, why, now) + _schedule_facts(job, scheduled, schedule, now) + forward_facts(forward, now, view)
    output.fields(facts)
    output.heading("arguments")
    output.say(pretty(job.args, view))
    if job.result is not None:
        output.heading("result")
        output.say(pretty(job.result, view))
    _print_attempts(attempts, job, now, view)
    output.heading("what you can do")
    for step in steps:
        output.say(f"  {step}")


def forward_brief(forward: Forward | None, now: datetime) -> str:
    """How far a forwarding is, in two or three words."""
    if forward is None:
        return "-"
    match forward.state:
        case "forwarded":
            return f"done {output.relative(forward.forwarded_at, now)}"
        case "stopped":
            return f"stopped after {_tries(forward)}"
        case _:
            return f"{forward.state}, {_tries(forward)}"


def _tries(forward: Forward) -> str:
    return output.plural(forward.tries, "try")


def forward_facts(forward: Forward | None, now: datetime, view: PayloadView) -> list[tuple[str, str]]:
    """How far a forwarding is, and what comes next."""
    if forward is None:
        return []
    facts = [
        ("forward", f"{forward.state}, {_tries(forward)} so far"),
        ("sink", forward.sink or "not known before the first try"),
    ]
    if forward.error is not None:
        facts.append(("refused", output.one_line(view.text(forward.error))))
    if forward.next_at is not None:
        facts.append(("next try", output.when(forward.next_at, now)))
    if forward.forwarded_at is not None:
        facts.append(("forwarded", output.when(forward.forwarded_at, now)))
    return facts


def _facts(job: Job, why: str, now: datetime) -> list[tuple[str, str]]:
    facts = [
        ("job", job.id),
        ("task", job.task),
        ("queue", job.queue if job.origin is None else f"{job.queue} (enqueued to {job.origin})"),
        ("state", job.state + (f" ({job.reason})" if job.reason else "")),
        ("why", why),
    ]
    if job.state == "waiting":
        facts.append(("until", output.when(job.run_at, now)))
    if job.state == "running":
        facts.append(("worker", str(job.worker)))
    facts.append(("attempts", f"{job.attempt} so far, {output.plural(job.failures, 'failure')} counted"))
    if job.max_attempts is not None:
        asked = "unlimited" if job.max_attempts == HIGHEST_LIMIT else output.plural(job.max_attempts, "attempt")
        facts.append(("limit", f"{asked} (set on the job; 'perdure explain {job.id}' tells whether it holds)"))
    if job.retry is not None:
        facts.append(("retry", f"{job.retry} (set on the job)"))
    if job.timeout is not None:
        facts.append(("timeout", output.rough(job.timeout)))
    if job.unique is not None:
        facts.append(("unique", job.unique))
    facts += [
        ("priority", str(job.priority)),
        ("delivery", job.delivery.replace("_", " ")),
        ("created", output.when(job.created_at, now)),
    ]
    if job.started_at is not None:
        facts.append(("started", output.when(job.started_at, now)))
    if job.ended_at is not None:
        facts.append(("ended", output.when(job.ended_at, now)))
    return facts


def _schedule_facts(
    job: Job, scheduled: ScheduledJob | None, schedule: Schedule | None, now: datetime
) -> list[tuple[str, str]]:
    """The schedule that made a job; of a job that was made with a schedule, its rule, its next time and its run."""
    if scheduled is None:
        if job.schedule is None:
            return []
        tick = "run by hand" if job.tick_at is None else f"tick of {output.absolute(job.tick_at)}"
        return [("schedule", f"{job.schedule} ({tick})")]
    facts: list[tuple[str, str]] = []
    if schedule is not None:
        known = schedule.definition
        facts.append(("schedule", f"{known.cron} ({description(schedule) or schedule.problem}), {schedule.standing}"))
        facts.append(("recurring", "yes" if known.is_recurring else "no"))
        if schedule.next_tick_at is not None:
            facts.append(("next tick", output.when(schedule.next_tick_at, now)))
    if scheduled.run is not None and scheduled.run.id != job.id:
        facts.append(("last run", f"{scheduled.run.id} ({scheduled.run.state})"))
    return facts


def _scheduled_document(scheduled: ScheduledJob, schedule: Schedule | None) -> dict[str, Any]:
    return {
        "last_run_id": None if scheduled.run is None else scheduled.run.id,
        "cron": None if schedule is None else schedule.definition.cron,
        "is_recurring": None if schedule is None else schedule.definition.is_recurring,
        "is_paused": None if schedule is None else schedule.is_paused,
        "next_tick_at": None if schedule is None else moment(schedule.next_tick_at),
    }


def _attempt_document(attempt: Attempt, job: Job, view: PayloadView) -> dict[str, Any]:
    """An attempt; of a run with an id of its own with that id."""
    document = attempt_document(attempt, view)
    return document if attempt.job_id == job.id else {**document, "run_id": attempt.job_id}


def _print_attempts(attempts: list[Attempt], job: Job, now: datetime, view: PayloadView) -> None:
    output.heading("attempts, newest first")
    if not attempts:
        output.say("  none yet")
    for attempt in reversed(attempts):
        took = ""
        if attempt.started_at is not None and attempt.ended_at is not None:
            took = f", took {output.rough(attempt.ended_at - attempt.started_at)}"
        run = "" if attempt.job_id == job.id else f", run {attempt.job_id}"
        output.say(f"  {attempt.attempt}  {attempt.outcome}  {output.when(attempt.started_at, now)}{took}{run}")
        if attempt.error is not None:
            output.say(f"     {output.one_line(view.text(str(attempt.error)))}")
            if attempt.error.detail:
                output.say(
                    f"     {output.one_line(json.dumps(view.failure(attempt.error)['detail'], ensure_ascii=False))}"
                )
        if attempt.delay is not None and not (job.is_final and attempt.attempt == job.attempt):
            output.say(f"     then a wait of {output.rough(attempt.delay)} was chosen")
    if job.error is not None and job.error.trace:
        output.heading("where the last error came from")
        for line in view.text(job.error.trace).rstrip().splitlines()[-_TRACE_LINES:]:
            output.say(f"  {line.rstrip()}")


def pretty(text: bytes, view: PayloadView) -> str:
    """Stored JSON text, indented for people."""
    value = view.payload(text)
    return "  " + json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")


def _steps_between_runs(scheduled: ScheduledJob) -> list[str]:
    """What can be done about a job that waits for the next time of its schedule."""
    name, run = scheduled.id, scheduled.run
    steps = [f"perdure jobs cancel {name}", f"perdure schedules show {name}"]
    if run is None:
        return [f"perdure jobs retry {name}    (run it now)", *steps]
    if run.state in ("dead", "cancelled"):
        return [f"perdure jobs retry {name}    (retry its last run)", f"perdure jobs show {run.id}", *steps]
    return [f"perdure schedules run {name}    (run it once more now)", *steps]


def _next_steps(job: Job, forward: Forward | None) -> list[str]:
    match job.state:
        case "dead":
            steps = [
                f"perdure dlq replay {job.id}",
                f"perdure dlq discard {job.id}",
                f"perdure explain {job.id}",
            ]
            if forward is not None and forward.state in ("failing", "stopped"):
                steps.insert(1, f"perdure dlq forward {job.id}")
            if job.error is not None:
                steps.append(f"perdure dlq ls --group {job.error.fingerprint(job.task)}")
            return steps
        case "cancelled":
            return [f"perdure jobs retry {job.id}"]
        case "waiting":
            return [
                f"perdure jobs retry {job.id}    (run it now)",
                f"perdure jobs cancel {job.id}",
                f"perdure explain {job.id}",
            ]
        case "ready":
            return [f"perdure jobs cancel {job.id}", "perdure workers ls", "perdure queues ls"]
        case "running":
            return [f"perdure jobs cancel {job.id}", "perdure workers ls"]
        case "succeeded":
            command = "http" if job.task == "http" else f"enqueue {job.task}"
            return [f"perdure {command} …    (a new job like it)"]
