"""`/api/v1/dead-letters`: the dead jobs, how they failed, and their dismissal."""

from __future__ import annotations

from perdure.admin import groups as error_groups
from perdure.admin import operate
from perdure.admin.document import group_document
from perdure.web.access.payload import view_of
from perdure.web.operation import API, Body, Operation
from perdure.web.paging import job_page
from perdure.web.request_context import Answer, Call
from perdure.web.rest.filters import filters_of, selection_of
from perdure.web.schemas.documents import Discarded, Groups, JobPage
from perdure.web.schemas.requests import DeadQuery, DeadSelection, GroupsQuery, NoQuery


async def list_dead(call: Call) -> Answer:
    """A page of dead jobs."""
    return await job_page(call, {**filters_of(call.query), "state": "dead"})


async def list_groups(call: Call) -> Answer:
    """The error groups."""
    query: GroupsQuery = call.query
    store = await call.context.store()
    found = await error_groups.groups(store, filters_of(query), limit=query.limit)
    view = view_of(call, is_list=True)
    return Answer(document={"groups": [group_document(group, view) for group in found]})


async def discard(call: Call) -> Answer:
    """Dismiss dead jobs."""
    body: DeadSelection = call.body
    store = await call.context.store()
    count = await operate.discard(store, *selection_of(body), dry_run=body.dry_run)
    return Answer(document={"count": count, "is_dry_run": body.dry_run})


OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/dead-letters",
        name="list_dead_letters",
        summary="List dead jobs, newest first.",
        scope="read",
        handler=list_dead,
        query=DeadQuery,
        answers={200: JobPage},
    ),
    Operation(
        method="GET",
        path=f"{API}/dead-letters/groups",
        name="list_groups",
        summary="Group dead jobs by how they failed, largest group first.",
        scope="read",
        handler=list_groups,
        query=GroupsQuery,
        answers={200: Groups},
    ),
    Operation(
        method="POST",
        path=f"{API}/dead-letters/discard",
        name="discard",
        summary="Dismiss dead jobs: they end cancelled, reason discarded, and are pruned in time.",
        scope="write",
        handler=discard,
        query=NoQuery,
        body=Body(forms=(DeadSelection,)),
        answers={200: Discarded},
        problems=(404, 409),
    ),
)
