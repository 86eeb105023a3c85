"""Jobs of the form `{schedule, api, type, isRecurring, maxRetryCount}`: a request at each tick of a rule.

Such a job is a schedule of the task `http`, and its id is the schedule's name, an id of its own. What it does at a tick
is a run: a job like any other, with its own id, that carries the schedule's name.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from perdure.admin import inspect, schedules
from perdure.admin.document import attempt_document, moment, payload
from perdure.admin.once import EnqueuedOnce, schedule_once
from perdure.admin.runs import attempts_of, cancel_runs, newest_run
from perdure.admin.selection import read_id
from perdure.errors import JobNotFound, Refused, ScheduleNotFound
from perdure.http.request import Request
from perdure.http_task import TASK
from perdure.model.job import Attempt, Job
from perdure.model.limit import DEFAULT_LIMIT
from perdure.model.rule import parse_rule
from perdure.model.schedule import Definition, Schedule
from perdure.model.state import Delivery
from perdure.store import Store
from perdure.task import schedule_of
from perdure.web.desk import Answer, Call
from perdure.web.keys import REPEATED, read_key
from perdure.web.operation import API, Operation
from perdure.web.problems import pointing
from perdure.web.requests import ClassicBody, ClassicChange, NoQuery
from perdure.web.schemas_schedule import ClassicSchedule

PRESET = "scheduler"

_DELIVERIES: dict[str, Delivery] = {"AT_LEAST_ONCE": "at_least_once", "AT_MOST_ONCE": "at_most_once"}
_TYPES = {delivery: name for name, delivery in _DELIVERIES.items()}
_STATUSES = {"succeeded": "SUCCESS", "failed": "FAILED", "timeout": "FAILED", "lost": "FAILED"}


async def make(call: Call, body: ClassicBody) -> Answer:
    """A job of this form; with a key once only."""
    definition = _definition(call, body)
    key = read_key(call.request, body)
    store = await call.desk.store()
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
        document = await show(store, name)
    except JobNotFound:
        # Made by an earlier request with this key, and deleted since.
        document = _document(name, None, definition, None, None)
    return Answer(document=document, status=201, headers=headers)


async def show(store: Store, job_id: str) -> dict[str, Any]:
    """A job of this form; raises JobNotFound."""
    known, run = await _find(store, job_id)
    last = await attempts_of(store, read_id(job_id), 1)
    source = run if known is None else known.definition
    assert source is not None, "one of both was found"
    return _document(read_id(job_id), known, source, run, last[0][1] if last else None)


async def history(store: Store, job_id: str, limit: int) -> dict[str, Any]:
    """The attempts over all runs of a job of this form, newest first; raises JobNotFound."""
    await _find(store, job_id)
    name = read_id(job_id)
    return {"attempts": [_execution(name, job, attempt) for job, attempt in await attempts_of(store, name, limit)]}


async def delete(store: Store, job_id: str) -> dict[str, Any]:
    """Remove the schedule and cancel what is unfinished of its runs; raises JobNotFound, Refused when all has ended."""
    known, _ = await _find(store, job_id)
    name = read_id(job_id)
    if known is not None:
        await schedules.remove_schedule(store, name)
    count = await cancel_runs(store, name)
    if known is None and not count:
        raise Refused(f"The job {name} has ended: its schedule is gone, and none of its runs is unfinished.")
    return {"id": name, "answer": "cancelled"}


async def change(call: Call, body: ClassicChange) -> Answer:
    """Change a job that was made with a schedule."""
    store = await call.desk.store()
    name = call.path["id"].lower()
    await _require_changeable(store, name)
    if body.schedule is not UNSET:
        with pointing("/schedule"):
            parse_rule(body.schedule)
    if body.api is not UNSET:
        with pointing("/api"):
            Request(url=body.api)
    is_paused = None if body.is_paused is UNSET else body.is_paused
    with pointing(""):
        await schedules.change_schedule(store, name, lambda known: _changed(call, known, body), is_paused=is_paused)
    return Answer(document=await show(store, name))


async def show_schedule(call: Call) -> Answer:
    """When a job runs: one that was made with a schedule, or by one."""
    store = await call.desk.store()
    job_id = call.path["id"].lower()
    try:
        made = await inspect.get(store, job_id)
    except JobNotFound:
        known, run = await _find(store, job_id)
        if known is None:
            raise ScheduleNotFound(
                f"The schedule of the job {job_id} is gone.", "It has fired for the only time, or was deleted."
            ) from None
    else:
        if made.schedule is None:
            raise ScheduleNotFound(f"The job {job_id} was not made by a schedule.", "It runs once; see its run_at.")
        known, run = await schedules.schedule(store, made.schedule), made
    document = {
        "job_id": job_id,
        "name": known.name,
        "schedule": known.definition.cron,
        "tz": known.definition.tz,
        "description": schedules.description(known),
        "is_recurring": known.definition.is_recurring,
        "is_paused": known.is_paused,
        "next_execution_time": _next(known, run),
        "next_tick": moment(known.next_at),
        "last_tick": moment(known.last_tick_at),
    }
    return Answer(document=document)


def _definition(call: Call, body: ClassicBody) -> Definition:
    app = call.desk.app
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
        given["args"] = call.desk.app.http.call(document).args
    if body.type is not UNSET:
        given["delivery"] = _DELIVERIES[body.type]
    if body.is_recurring is not UNSET:
        given["is_recurring"] = body.is_recurring
    if body.max_retry_count is not UNSET:
        given["max_attempts"] = body.max_retry_count + 1
    return msgspec.structs.replace(known, **given)


async def _find(store: Store, job_id: str) -> tuple[Schedule | None, Job | None]:
    """The schedule, while there is one, and its newest run, if any; raises JobNotFound where there is neither."""
    name = read_id(job_id)
    [known] = await store.get_schedules([name])
    run = await newest_run(store, name)
    if known is not None and known.definition.task != TASK:
        known = None
    if run is not None and run.task != TASK:
        run = None
    if known is None and run is None:
        raise JobNotFound(f"No job has the id {name}.", "Finished jobs are pruned after the retention time.")
    return known, run


async def _require_changeable(store: Store, job_id: str) -> None:
    try:
        known, _ = await _find(store, job_id)
    except JobNotFound:
        await inspect.get(store, job_id)
        raise Refused(
            f"The job {job_id} was not made with a schedule, so it has none of these fields.",
            "Its delay, run_at, priority, queue and limit can be changed.",
        ) from None
    if known is None:
        raise Refused(f"The job {job_id} has ended: its schedule is gone.", "Make a new one.")


def _document(
    name: str, known: Schedule | None, source: Definition | Job, run: Job | None, attempt: Attempt | None
) -> dict[str, Any]:
    return {
        "id": name,
        "schedule": None if known is None else known.definition.cron,
        "api": _api(source),
        "type": _TYPES[source.delivery],
        "is_recurring": None if known is None else known.definition.is_recurring,
        "max_retry_count": (source.max_attempts or DEFAULT_LIMIT) - 1,
        "status": "ended" if known is None else known.standing,
        "next_execution_time": _next(known, run),
        "last_execution_time": None if attempt is None else moment(attempt.started_at),
        "last_status": None if attempt is None else _status(attempt),
    }


def _api(source: Definition | Job) -> str:
    found = payload(source.args)
    return str(found.get("kwargs", {}).get("url", "")) if isinstance(found, dict) else ""


def _next(known: Schedule | None, run: Job | None) -> str | None:
    """The next retry of an unfinished run, else the next tick."""
    if run is not None and run.state in ("waiting", "ready"):
        return moment(run.run_at)
    return None if known is None else moment(known.next_at)


def _execution(name: str, job: Job, attempt: Attempt) -> dict[str, Any]:
    return {
        **attempt_document(attempt),
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
