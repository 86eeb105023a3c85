"""`/api/v1/stats` and `/api/v1/workers`: the numbers over all queues, and who runs the jobs."""

from __future__ import annotations

from perdure.admin import inspect
from perdure.admin.document import stats_document, worker_document
from perdure.web.operation import API, Operation
from perdure.web.request_context import Answer, Call
from perdure.web.schemas.documents import StatsDocument, Workers
from perdure.web.schemas.requests import NoQuery


async def show_stats(call: Call) -> Answer:
    """The numbers."""
    return Answer(document=stats_document(await inspect.stats(await call.context.store())))


async def list_workers(call: Call) -> Answer:
    """Every registered worker."""
    store = await call.context.store()
    now = await store.now()
    return Answer(document={"workers": [worker_document(worker, now) for worker in await inspect.workers(store)]})


OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/stats",
        name="show_stats",
        summary="The numbers over all queues, and each queue's.",
        scope="read",
        handler=show_stats,
        query=NoQuery,
        answers={200: StatsDocument},
    ),
    Operation(
        method="GET",
        path=f"{API}/workers",
        name="list_workers",
        summary="List the registered workers, oldest first.",
        scope="read",
        handler=list_workers,
        query=NoQuery,
        answers={200: Workers},
    ),
)
