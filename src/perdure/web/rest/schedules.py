"""`/api/v1/schedules`: list, make, look at, change, pause, resume, run, look ahead and remove schedules."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from perdure.admin import schedules as service
from perdure.admin.document import moment, schedule_document
from perdure.app import App
from perdure.application.http_task import TASK
from perdure.errors import Refused, ScheduleNotFound
from perdure.model.payload.codec import decode_args
from perdure.model.policy.retry import Retry
from perdure.model.schedule.definition import Definition, read_zone
from perdure.model.schedule.option import checked_schedule_name, make_definition
from perdure.model.schedule.rule import parse_rule
from perdure.task import Bound, schedule_of
from perdure.text.suggestion import suggestion
from perdure.web.access.payload import view_of
from perdure.web.operation import API, Body, Operation
from perdure.web.paging import next_link, pieced
from perdure.web.problems import invalid, pointing
from perdure.web.request_context import Answer, Call
from perdure.web.schemas.requests import NoBody, NoQuery
from perdure.web.schemas.schedule_requests import (
    HttpBody,
    NewScheduleBody,
    RevealQuery,
    ScheduleChange,
    SchedulesQuery,
    TicksQuery,
)
from perdure.web.schemas.schedules import (
    ScheduleDocument,
    SchedulePage,
    ScheduleRemoved,
    ScheduleRun,
    ScheduleSwitched,
    TicksDocument,
)

_JOB_OPTIONS = ("queue", "priority", "max_attempts", "max_retries", "retry", "delivery", "timeout")
_CHANGES = ("cron", "tz", "is_recurring", "overlap", "missed", *_JOB_OPTIONS)


async def list_schedules(call: Call) -> Answer:
    """A page of schedules."""
    query: SchedulesQuery = call.query
    view = view_of(call, is_list=True)
    store = await call.context.store()
    found, cursor = await pieced(
        lambda after, limit: service.current_schedules(store, limit=limit, after=after),
        limit=query.limit,
        after=query.cursor,
        name_of=lambda each: each.name,
        size_of=lambda each: len(each.definition.args) + 1_000,
        document=lambda each: schedule_document(each, view),
    )
    return Answer(document={"schedules": found, "next_cursor": cursor}, headers=next_link(call.request, cursor))


async def make_schedule(call: Call) -> Answer:
    """A schedule; the same one again changes nothing."""
    body: NewScheduleBody = call.body
    _check_texts(body)
    if body.http is not None and (body.task is not None or body.args or body.kwargs):
        raise invalid("http stands instead of task, args and kwargs.", pointer="/http")
    given = {name: value for name in _JOB_OPTIONS if (value := getattr(body, name)) is not None}
    if body.http is not None:
        bound = _request(call.context.app, body.http, given)
    elif body.task is not None:
        bound = _bound(call, body.task, body.args, body.kwargs, given)
    else:
        raise invalid("Nothing says what to do: give a task, or http with a request.", pointer="/task")
    with pointing(""):
        definition = schedule_of(
            body.name,
            bound,
            cron=body.cron,
            tz=body.tz,
            overlap=body.overlap,
            missed=body.missed,
            recurring=body.is_recurring,
        )
    store = await call.context.store()
    [before] = await store.get_schedules([body.name])
    made = await service.add_schedule(store, definition)
    headers = {"Location": f"{call.request.scope.get('root_path', '')}{API}/schedules/{body.name}"}
    return Answer(
        document=schedule_document(made, view_of(call)), status=201 if before is None else 200, headers=headers
    )


async def show_schedule(call: Call) -> Answer:
    """One schedule."""
    found = await service.schedule(await call.context.store(), _name(call))
    return Answer(document=schedule_document(found, view_of(call)))


async def change_schedule(call: Call) -> Answer:
    """Change what is named of a schedule."""
    body: ScheduleChange = call.body
    _check_texts(body)
    if body.http is not UNSET and (body.task, body.args, body.kwargs) != (UNSET, UNSET, UNSET):
        raise invalid("http stands instead of task, args and kwargs.", pointer="/http")
    is_paused = None if body.is_paused is UNSET else body.is_paused
    store = await call.context.store()
    known = await service.schedule(store, _name(call))
    if known.stopped_at is not None and body.is_recurring is not True:
        raise Refused(
            f"The only run of the job {known.name} was made already, and the schedule makes no other.",
            f"Change the job: PATCH {API}/jobs/{known.name}.",
        )
    changed = await service.change_schedule(
        store, _name(call), lambda known: _changed(call, known, body), is_paused=is_paused
    )
    return Answer(document=schedule_document(changed, view_of(call)))


async def remove_schedule(call: Call) -> Answer:
    """Forget a schedule."""
    name = _name(call)
    await service.remove_schedule(await call.context.store(), name)
    return Answer(document={"name": name, "is_removed": True})


async def pause_schedule(call: Call) -> Answer:
    """Stop firing a schedule."""
    name = _name(call)
    is_changed = await service.pause_schedule(await call.context.store(), name)
    return Answer(document={"name": name, "is_paused": True, "is_changed": is_changed})


async def resume_schedule(call: Call) -> Answer:
    """Fire a schedule again."""
    name = _name(call)
    is_changed = await service.resume_schedule(await call.context.store(), name)
    return Answer(document={"name": name, "is_paused": False, "is_changed": is_changed})


async def run_schedule(call: Call) -> Answer:
    """Make a job of a schedule at once."""
    name = _name(call)
    job_id = await service.run_schedule_now(await call.context.store(), name, call.context.app.observer)
    headers = {"Location": f"{call.request.scope.get('root_path', '')}{API}/jobs/{job_id}"}
    return Answer(document={"name": name, "id": job_id}, status=201, headers=headers)


async def show_ticks(call: Call) -> Answer:
    """The next ticks of a schedule."""
    name = _name(call)
    store = await call.context.store()
    found = await service.schedule(store, name)
    if found.standing == "broken":
        raise Refused(f"The ticks of the schedule {name} cannot be worked out.", found.problem)
    ticks = await service.next_ticks(store, name, call.query.n)
    known = found.definition
    document = {"name": name, "cron": known.cron, "tz": known.tz, "ticks": [moment(tick) for tick in ticks]}
    return Answer(document=document)


def _name(call: Call) -> str:
    name = call.path["name"]
    try:
        return checked_schedule_name(name)
    except ValueError:
        raise ScheduleNotFound(f"No schedule is named {name[:80]!r}.") from None


def _check_texts(body: NewScheduleBody | ScheduleChange) -> None:
    """Texts that have a grammar, each where it stands."""
    if isinstance(body.cron, str):
        with pointing("/cron"):
            parse_rule(body.cron)
    if isinstance(body.tz, str):
        with pointing("/tz"):
            read_zone(body.tz)
    if isinstance(body.retry, str):
        with pointing("/retry"):
            Retry.coerce(body.retry)


def _bound(call: Call, task: str, args: list[Any], kwargs: dict[str, Any], options: dict[str, Any]) -> Bound:
    app = call.context.app
    if task not in (*app.tasks, TASK) and not call.context.accepts_any_task:
        near = suggestion(task, app.tasks)
        hint = f"Did you mean {near!r}?" if near else "Start the server with the app that has it."
        raise invalid(f"The app has no task {task!r}. {hint}", pointer="/task")
    with pointing(""):
        return app.bind_named(task, args, kwargs, **options)


def _request(app: App, body: HttpBody, options: dict[str, Any]) -> Bound:
    with pointing("/http"):
        return app.http.call(body.document(), **options)


def _changed(call: Call, known: Definition, body: ScheduleChange) -> Definition:
    given: dict[str, Any] = {name: getattr(known, name) for name in known.__struct_fields__}
    asked = {name: value for name in _CHANGES if (value := getattr(body, name)) is not UNSET}
    if asked.get("max_retries") is not None and "max_attempts" not in asked:
        given["max_attempts"] = None
    if asked.get("max_retries", UNSET) is None:
        asked.setdefault("max_attempts", None)
    given |= asked
    if body.http is not UNSET:
        bound = _request(call.context.app, body.http, {})
        given |= {"task": bound.task, "args": bound.args}
        if bound.options.timeout is not None:
            given["timeout"] = bound.options.timeout
    elif (body.task, body.args, body.kwargs) != (UNSET, UNSET, UNSET):
        args, kwargs = decode_args(known.args)
        task = known.task if body.task is UNSET else body.task
        args = args if body.args is UNSET else body.args
        kwargs = kwargs if body.kwargs is UNSET else body.kwargs
        given |= {"task": task, "args": _bound(call, task, args, kwargs, {}).args}
    with pointing(""):
        return make_definition(**given)


def _operation(
    method: Any, path: str, name: str, summary: str, handler: Any, answers: dict[int, Any], **more: Any
) -> Operation:
    made: dict[str, Any] = {"scope": "read" if method == "GET" else "write", "query": NoQuery, **more}
    if made["scope"] == "write":
        made["problems"] = (409,)
    return Operation(
        method=method, path=API + path, name=name, summary=summary, handler=handler, answers=answers, **made
    )


_OPTIONAL = Body(forms=(NoBody,), is_required=False)
_ONE = "/schedules/{name}"

OPERATIONS = (
    _operation(
        "GET",
        "/schedules",
        "list_schedules",
        "List the schedules by name.",
        list_schedules,
        {200: SchedulePage},
        query=SchedulesQuery,
    ),
    _operation(
        "POST",
        "/schedules",
        "make_schedule",
        "Make a schedule of a task or of a request.",
        make_schedule,
        {200: ScheduleDocument, 201: ScheduleDocument},
        body=Body(forms=(NewScheduleBody,)),
        details="200: the same schedule is there already.",
    ),
    _operation(
        "GET", _ONE, "show_schedule", "Show a schedule.", show_schedule, {200: ScheduleDocument}, query=RevealQuery
    ),
    _operation(
        "PATCH",
        _ONE,
        "change_schedule",
        "Change or pause a schedule; what is not named stays.",
        change_schedule,
        {200: ScheduleDocument},
        body=Body(forms=(ScheduleChange,)),
    ),
    _operation(
        "DELETE",
        _ONE,
        "remove_schedule",
        "Remove a schedule; the jobs that it made stay.",
        remove_schedule,
        {200: ScheduleRemoved},
    ),
    _operation(
        "POST",
        f"{_ONE}/pause",
        "pause_schedule",
        "Stop firing a schedule; jobs that it made go on.",
        pause_schedule,
        {200: ScheduleSwitched},
        body=_OPTIONAL,
    ),
    _operation(
        "POST",
        f"{_ONE}/resume",
        "resume_schedule",
        "Fire a paused schedule again, from its next tick on.",
        resume_schedule,
        {200: ScheduleSwitched},
        body=_OPTIONAL,
    ),
    _operation(
        "POST",
        f"{_ONE}/run",
        "run_schedule",
        "Make a job of a schedule at once, beside its ticks.",
        run_schedule,
        {201: ScheduleRun},
        body=_OPTIONAL,
    ),
    _operation(
        "GET",
        f"{_ONE}/ticks",
        "show_ticks",
        "Look ahead at the next ticks of a schedule.",
        show_ticks,
        {200: TicksDocument},
        query=TicksQuery,
        problems=(409,),
    ),
)
