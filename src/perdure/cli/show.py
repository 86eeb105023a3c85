"""One job as a person needs to see it: state and why, attempts with errors and delays, arguments, what to do next."""

from __future__ import annotations

import json
from datetime import datetime

from perdure.admin import inspect
from perdure.admin.document import attempt_document, forward_document, job_document, payload
from perdure.cli import output
from perdure.cli.session import Session
from perdure.model.forward import Forward
from perdure.model.job import Attempt, Job
from perdure.model.limit import HIGHEST_LIMIT
from perdure.store import Store

_TRACE_LINES = 12


def show_job(session: Session, store: Store, job_id: str) -> None:
    """Print everything about a job."""
    job = inspect.get(store, job_id).wait()
    attempts = store.history(job.id, 100).wait()
    forward = store.forwards([job.id]).wait().get(job.id)
    now = store.now().wait()
    why = inspect.why(store, job).wait()
    if session.is_json:
        session.emit(
            {
                **job_document(job),
                "forward": forward_document(forward),
                "why": why,
                "attempts": [attempt_document(attempt) for attempt in attempts],
                "next": _next_steps(job, forward),
            }
        )
        return
    output.fields(_facts(job, why, now) + forward_facts(forward, now))
    output.heading("arguments")
    output.say(pretty(job.args))
    if job.result is not None:
        output.heading("result")
        output.say(pretty(job.result))
    _print_attempts(attempts, job, now)
    output.heading("what you can do")
    for step in _next_steps(job, forward):
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
    return "1 try" if forward.tries == 1 else f"{forward.tries:,} tries"


def forward_facts(forward: Forward | None, now: datetime) -> list[tuple[str, str]]:
    """How far a forwarding is, and what comes next."""
    if forward is None:
        return []
    facts = [
        ("forward", f"{forward.state}, {_tries(forward)} so far"),
        ("sink", forward.sink or "not known before the first try"),
    ]
    if forward.error is not None:
        facts.append(("refused", output.one_line(forward.error)))
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
    if job.schedule is not None:
        tick = "run by hand" if job.tick_at is None else f"tick of {output.absolute(job.tick_at)}"
        facts.append(("schedule", f"{job.schedule} ({tick})"))
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


def _print_attempts(attempts: list[Attempt], job: Job, now: datetime) -> None:
    output.heading("attempts, newest first")
    if not attempts:
        output.say("  none yet")
    for attempt in reversed(attempts):
        took = ""
        if attempt.started_at is not None and attempt.ended_at is not None:
            took = f", took {output.rough(attempt.ended_at - attempt.started_at)}"
        output.say(f"  {attempt.attempt}  {attempt.outcome}  {output.when(attempt.started_at, now)}{took}")
        if attempt.error is not None:
            output.say(f"     {output.one_line(str(attempt.error))}")
            if attempt.error.detail:
                output.say(f"     {output.one_line(json.dumps(attempt.error.detail, ensure_ascii=False))}")
        if attempt.delay is not None and not (job.is_final and attempt.attempt == job.attempt):
            output.say(f"     then a wait of {output.rough(attempt.delay)} was chosen")
    if job.error is not None and job.error.trace:
        output.heading("where the last error came from")
        for line in job.error.trace.rstrip().splitlines()[-_TRACE_LINES:]:
            output.say(f"  {line.rstrip()}")


def pretty(text: bytes) -> str:
    """Stored JSON text, indented for people."""
    value = payload(text)
    return "  " + json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")


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
