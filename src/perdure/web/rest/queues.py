"""`/api/v1/queues`: queues, their numbers, their switch and what is set about them."""

from __future__ import annotations

from msgspec import UNSET

from perdure.admin import inspect, operate
from perdure.admin.document import queue_document
from perdure.admin.tune import SETTING_NAMES, configure
from perdure.model.option import checked_queue
from perdure.web.operation import API, Body, Operation
from perdure.web.problems import pointing
from perdure.web.request_context import Answer, Call
from perdure.web.schemas.documents import QueueDocument, Queues, Switched
from perdure.web.schemas.requests import NoBody, NoQuery, PauseBody
from perdure.web.schemas.schedule_requests import QueueChange


async def list_queues(call: Call) -> Answer:
    """Every queue."""
    store = await call.context.store()
    now = await store.now()
    return Answer(document={"queues": [queue_document(queue, now) for queue in await inspect.queues(store)]})


async def show_queue(call: Call) -> Answer:
    """One queue."""
    store = await call.context.store()
    now = await store.now()
    return Answer(document=queue_document(await inspect.known_queue(store, call.path["name"]), now))


async def pause(call: Call) -> Answer:
    """Stop fetching from a queue."""
    queue = checked_queue(call.path["name"])
    body: PauseBody = call.body or PauseBody()
    store = await call.context.store()
    is_changed = await operate.pause(store, queue, body.reason, until=body.until, duration=body.duration)
    return Answer(document={"queue": queue, "is_paused": True, "is_changed": is_changed})


async def resume(call: Call) -> Answer:
    """Fetch from a queue again."""
    queue = checked_queue(call.path["name"])
    is_changed = await operate.resume(await call.context.store(), queue)
    return Answer(document={"queue": queue, "is_paused": False, "is_changed": is_changed})


async def change_queue(call: Call) -> Answer:
    """Set what is said about a queue."""
    queue = checked_queue(call.path["name"])
    body: QueueChange = call.body
    given = {name: value for name in SETTING_NAMES if (value := getattr(body, name)) is not UNSET}
    unset = [name for name, value in given.items() if value is None]
    store = await call.context.store()
    with pointing(""):
        await configure(store, queue, unset=unset, **given)
    return Answer(document=queue_document(await inspect.queue(store, queue), await store.now()))


OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/queues",
        name="list_queues",
        summary="List every queue that has a job or a switch.",
        scope="read",
        handler=list_queues,
        query=NoQuery,
        answers={200: Queues},
    ),
    Operation(
        method="GET",
        path=f"{API}/queues/{{name}}",
        name="show_queue",
        summary="Show a queue.",
        scope="read",
        handler=show_queue,
        query=NoQuery,
        answers={200: QueueDocument},
    ),
    Operation(
        method="PATCH",
        path=f"{API}/queues/{{name}}",
        name="change_queue",
        summary="Set how a queue treats its retries and how much of it may run at once, for all workers.",
        scope="write",
        handler=change_queue,
        query=NoQuery,
        body=Body(forms=(QueueChange,)),
        answers={200: QueueDocument},
    ),
    Operation(
        method="POST",
        path=f"{API}/queues/{{name}}/pause",
        name="pause_queue",
        summary="Stop fetching from a queue; jobs that run go on.",
        scope="write",
        handler=pause,
        query=NoQuery,
        body=Body(forms=(PauseBody,), is_required=False),
        answers={200: Switched},
    ),
    Operation(
        method="POST",
        path=f"{API}/queues/{{name}}/resume",
        name="resume_queue",
        summary="Fetch from a paused queue again.",
        scope="write",
        handler=resume,
        query=NoQuery,
        body=Body(forms=(NoBody,), is_required=False),
        answers={200: Switched},
    ),
)
