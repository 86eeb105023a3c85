"""Jobs of the form `{schedule, api, type, isRecurring, maxRetryCount}`: a request at each tick of a rule.

Such a job is a schedule of the task `http`, and its id is the schedule's name. What it does at a tick is a run: a job
like any other, that carries the schedule's name. The only run of a one-shot job has the id of the scheduled job; the
runs of a recurring one have ids of their own.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec
from msgspec import UNSET

from perdure.admin import inspect, operate, schedules
from perdure.admin.document import moment
from perdure.admin.idempotency import EnqueuedOnce, schedule_once
from perdure.admin.payload_view import PayloadView, payload
from perdure.admin.runs import cancel_runs
from perdure.admin.scheduled import ScheduledJob, attempts_over_runs
from perdure.admin.selection import not_found, read_id
from perdure.application.http_task import TASK
from perdure.errors import JobNotFound, Refused, ScheduleNotFound
from perdure.http.request import Request
from perdure.model.change import Change
from perdure.model.job import Attempt, Job, JobId
from perdure.model.policy.limit import DEFAULT_LIMIT
from perdure.model.schedule.definition import Definition, Schedule
from perdure.model.schedule.rule import parse_rule
from perdure.model.state import Delivery
from perdure.store import Store
from perdure.task import schedule_of
from perdure.web.access.payload import view_of
from perdure.web.history import attempt_documents
from perdure.web.idempotency import REPEATED, read_key
from perdure.web.operation import API, Operation
from perdure.web.problems import pointing
from perdure.web.request_context import Answer, Call
from perdure.web.schemas.requests import ClassicBody, ClassicChange, NoQuery
from perdure.web.schemas.schedules import ClassicSchedule

PRESET = "scheduler"

_DELIVERIES: dict[str, Delivery] = {"AT_LEAST_ONCE": "at_least_once", "AT_MOST_ONCE": "at_most_once"}
_TYPES = {delivery: name for name, delivery in _DELIVERIES.items()}
_STATUSES = {"succeeded": "SUCCESS", "failed": "FAILED", "timeout": "FAILED", "lost": "FAILED"}


async def make(call: Call, body: ClassicBody) -> Answer:
    """A job of this form; with a key once only."""
    definition = _definition(call, body)
    key = read_key(call.request, body)
    store = await call.context.store()
    if key is None:
        await schedules.add_schedule(store, definition)
        done = EnqueuedOnce(planned=(), ids=())
        name = definition.name
    else:
        done = await schedule_once(store, definition, key)
        [name] = done.ids
    headers = dict(REPEATED) if done.is_repeated else {}
    headers["Location"] = f"{call.request.scope.get('root_path', '')}{API}/jobs/{name}"
    try:
        document = await show(store, await _find(store, name), view_of(call))
    except JobNotFound:
        # Made by an earlier request with this key, and deleted since.
        gone = ScheduledJob(id=JobId(name), schedule=None, run=None)
        document = _document(gone, definition, None, view_of(call))
    return Answer(document=document, status=201, headers=headers)


def is_classic(found: Job | ScheduledJob) -> TypeGuard[ScheduledJob]:
    """Whether what an id stands for is a job of this form."""
    if not isinstance(found, ScheduledJob):
        return False
    task = found.run.task if found.schedule is None and found.run is not None else None
    return TASK in (task, None if found.schedule is None else found.schedule.definition.task)


async def show(store: Store, found: ScheduledJob, view: PayloadView) -> dict[str, Any]:
    """A job of this form."""
    last = await attempts_over_runs(store, found, 1)
    source = found.run if found.schedule is None else found.schedule.definition
    assert source is not None, "one of both was found"
    return _document(found, source, last[0][1] if last else None, view)


async def history(store: Store, found: ScheduledJob, limit: int, view: PayloadView) -> dict[str, Any]:
    """The attempts over all runs of a job of this form, newest first."""
    pairs = await attempts_over_runs(store, found, limit)
    documents = attempt_documents((attempt for _, attempt in pairs), view)
    return {
        "attempts": [
            _execution(found.id, job, attempt, document)
            for (job, attempt), document in zip(pairs, documents, strict=True)
        ]
    }


async def delete(store: Store, found: ScheduledJob) -> dict[str, Any]:
    """Remove the schedule and cancel what is unfinished of its runs; raises Refused when all has ended."""
    if found.is_ended:
        raise Refused(f"The job {found.id} has ended: its schedule is gone, and none of its runs is unfinished.")
    if found.schedule is not None:
        await store.remove_schedule(found.id)
    await cancel_runs(store, found.id)
    return {"id": found.id, "answer": "cancelled"}


async def change(call: Call, body: ClassicChange) -> Answer:
    """Change a job that was made with a schedule."""
    store = await call.context.store()
    found = await _changeable(store, call.path["id"])
    name = found.id
    if body.schedule is not UNSET:
        with pointing("/schedule"):
            parse_rule(body.schedule)
    if body.api is not UNSET:
        with pointing("/api"):
            Request(url=body.api)
    is_paused = None if body.is_paused is UNSET else body.is_paused
    with pointing(""):
        has_begun = await _change_only_run(call, found, body)
        changed = await schedules.change_schedule(
            store, name, lambda known: _changed(call, known, body), is_paused=is_paused
        )
        if changed.stopped_at is not None and not has_begun:
            # Its only run was made in the meantime.
            await _change_only_run(call, await _changeable(store, name), body)
    return Answer(document=await show(store, await _find(store, name), view_of(call)))


async def show_schedule(call: Call) -> Answer:
    """When a job runs: one that was made with a schedule, or by one."""
    store = await call.context.store()
    found = await inspect.look_up(store, call.path["id"])
    if isinstance(found, ScheduledJob):
        if found.schedule is None or found.is_ended:
            raise ScheduleNotFound(
                f"The schedule of the job {found.id} is gone.", "The job has ended, was cancelled or was deleted."
            )
        known, run = found.schedule, found.run
    else:
        if found.schedule is None:
            raise ScheduleNotFound(f"The job {found.id} was not made by a schedule.", "It runs once; see its run_at.")
        known, run = await schedules.schedule(store, found.schedule), found
    document = {
        "job_id": found.id,
        "name": known.name,
        "schedule": known.definition.cron,
        "tz": known.definition.tz,
        "description": schedules.description(known),
        "is_recurring": known.definition.is_recurring,
        "is_paused": known.is_paused,
        "next_execution_time": _next(known, run),
        "next_tick": moment(known.next_tick_at),
        "last_tick": moment(known.last_tick_at),
    }
    return Answer(document=document)


def _definition(call: Call, body: ClassicBody) -> Definition:
    app = call.context.app
    retries = DEFAULT_LIMIT - 1 if body.max_retry_count is None else body.max_retry_count
    with pointing("/schedule"):
        parse_rule(body.schedule)
    with pointing("/api"):
        bound = app.http.post(
            body.api, retry_on="all", retry=PRESET, max_retries=retries, delivery=_DELIVERIES[body.type]
        )
    with pointing(""):
        return schedule_of(
            app.surroundings.ids.job(),
            bound,
            cron=body.schedule,
            tz="UTC",
            overlap="skip",
            missed="latest",
            recurring=body.is_recurring,
        )


def _changed(call: Call, known: Definition, body: ClassicChange) -> Definition:
    given: dict[str, Any] = {}
    if body.schedule is not UNSET:
        given["cron"] = " ".join(body.schedule.split())
    if body.api is not UNSET:
        document = {**payload(known.args).get("kwargs", {}), "url": body.api}
        # Bound anew: a secret that the request names may not be meant for the new host.
        given["args"] = call.context.app.http.call(document).args
    if body.type is not UNSET:
        given["delivery"] = _DELIVERIES[body.type]
    if body.is_recurring is not UNSET:
        given["is_recurring"] = body.is_recurring
    if body.max_retry_count is not UNSET:
        given["max_attempts"] = body.max_retry_count + 1
    return msgspec.structs.replace(known, **given)


async def _find(store: Store, job_id: str) -> ScheduledJob:
    """The job of this form with this id; raises JobNotFound."""
    found = await inspect.look_up(store, job_id)
    if not is_classic(found):
        raise not_found(read_id(job_id))
    return found


async def _changeable(store: Store, job_id: str) -> ScheduledJob:
    found = await inspect.look_up(store, job_id)
    if not is_classic(found):
        raise Refused(
            f"The job {found.id} was not made with a schedule, so it has none of these fields.",
            "Its delay, run_at, priority, queue and limit can be changed.",
        )
    if found.schedule is None or found.is_ended:
        raise Refused(f"The job {found.id} has ended: its schedule is gone.", "Make a new one, or retry it first.")
    if found.schedule.stopped_at is not None and found.schedule.definition.is_recurring:
        raise Refused(f"The job {found.id} is being cancelled.", "Wait until its run has ended, then retry it.")
    return found


async def _change_only_run(call: Call, found: ScheduledJob, body: ClassicChange) -> bool:
    """Apply a change to the only run of a one-shot job, if that was made already; raises WrongState while it runs."""
    assert found.schedule is not None, "a job without a schedule cannot be changed"
    if found.schedule.stopped_at is None or found.run is None or body.is_recurring is True or body.is_paused is True:
        return False
    before, after = found.schedule.definition, _changed(call, found.schedule.definition, body)
    store = await call.context.store()
    now = await store.now()
    change = Change(
        run_at=after.ticks(found.schedule.created_at).after(now) if body.schedule is not UNSET else None,
        args=None if after.args == before.args else after.args,
        delivery=after.delivery,
        max_attempts=after.max_attempts,
    )
    await operate.change(store, found.run.id, change)
    return True


def _document(
    found: ScheduledJob, source: Definition | Job, attempt: Attempt | None, view: PayloadView
) -> dict[str, Any]:
    known = None if found.is_ended else found.schedule
    return {
        "id": found.id,
        "schedule": None if known is None else known.definition.cron,
        "api": view.text(_api(source)),
        "type": _TYPES[source.delivery],
        "is_recurring": None if known is None else known.definition.is_recurring,
        "max_retry_count": (source.max_attempts or DEFAULT_LIMIT) - 1,
        "status": _standing(found),
        "next_execution_time": None if found.is_ended else _next(known, found.run),
        "last_execution_time": None if attempt is None else moment(attempt.started_at),
        "last_status": _last_status(found, attempt),
        "last_run_id": None if found.run is None else found.run.id,
    }


def _standing(found: ScheduledJob) -> str:
    if found.is_ended:
        return "ended"
    if found.schedule is None or found.schedule.stopped_at is not None:
        # The schedule does not fire again, but a run of it is unfinished.
        return "active"
    return found.schedule.standing


def _last_status(found: ScheduledJob, attempt: Attempt | None) -> str | None:
    if found.run is not None and found.run.state == "cancelled":
        return "CANCELLED"
    return None if attempt is None else _status(attempt)


def _api(source: Definition | Job) -> str:
    found = payload(source.args)
    return str(found.get("kwargs", {}).get("url", "")) if isinstance(found, dict) else ""


def _next(known: Schedule | None, run: Job | None) -> str | None:
    """When an unfinished run that has not started is due, else the next tick; without one, when the attempt was due."""
    if run is not None and run.state in ("waiting", "ready"):
        return moment(run.run_at)
    next_at = None if known is None else known.next_tick_at
    if next_at is None and run is not None and run.state == "running":
        next_at = run.run_at
    return moment(next_at)


def _execution(name: str, job: Job, attempt: Attempt, document: dict[str, Any]) -> dict[str, Any]:
    return {
        **document,
        "job_id": name,
        "run_id": job.id,
        "status": _status(attempt),
        "execution_time": moment(attempt.started_at),
        "http_status": _http_status(job, attempt),
    }


def _status(attempt: Attempt) -> str:
    return _STATUSES.get(attempt.outcome, attempt.outcome.upper())


def _http_status(job: Job, attempt: Attempt) -> int | None:
    if attempt.outcome == "succeeded":
        kept = None if job.result is None else payload(job.result)
    else:
        kept = None if attempt.error is None else attempt.error.detail
    status = kept.get("status") if isinstance(kept, dict) else None
    return status if isinstance(status, int) else None


OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/jobs/{{id}}/schedule",
        name="show_job_schedule",
        summary="When a job runs that was made with a schedule, or by one.",
        scope="read",
        handler=show_schedule,
        query=NoQuery,
        answers={200: ClassicSchedule},
    ),
)
