"""`/api/v1/replays`: dead jobs put back, and what was put back before."""

from __future__ import annotations

from typing import Any

import msgspec

from perdure.admin import idempotency as once
from perdure.admin.document import moment
from perdure.admin.idempotency import RecordedReplay
from perdure.admin.replay import replay
from perdure.web.idempotency import REPEATED, read_key
from perdure.web.operation import API, Body, Operation
from perdure.web.request_context import Answer, Call
from perdure.web.rest.filters import selection_of
from perdure.web.schemas.documents import ReplayDocument, Replays
from perdure.web.schemas.requests import LimitQuery, NoQuery, ReplayBody

_IDS_IN_LISTS = 20
"""How many of the ids that were asked for a list of replays shows."""


async def make_replay(call: Call) -> Answer:
    """Put dead jobs back, or only count them."""
    body: ReplayBody = call.body
    app = call.context.app
    key = read_key(call.request, body)
    store = await call.context.store()
    request = {name: value for name, value in msgspec.to_builtins(body).items() if value not in (None, False)}
    if body.dry_run:
        counted = await replay(store, *selection_of(body), rate=body.rate, canary=body.canary, dry_run=True)
        return Answer(
            document={
                "id": None,
                "at": moment(await store.now()),
                "count": counted.count,
                "matching": counted.matching,
                "is_dry_run": True,
                "request": request,
            }
        )
    done = await once.replay_recorded(
        store,
        app.surroundings.ids.job(),
        request,
        selection_of(body),
        rate=body.rate,
        canary=body.canary,
        key=key,
        retention=app.settings.retention,
    )
    return Answer(document=_document(done), status=201, headers=REPEATED if done.is_repeated else {})


async def list_replays(call: Call) -> Answer:
    """The replays that were asked for."""
    found = await once.replays(await call.context.store(), call.query.limit)
    return Answer(document={"replays": [_document(each, most_ids=_IDS_IN_LISTS) for each in found]})


def _document(replayed: RecordedReplay, most_ids: int | None = None) -> dict[str, Any]:
    record = replayed.record
    request, ids = record.request, record.request.get("ids")
    if most_ids is not None and isinstance(ids, list) and len(ids) > most_ids:
        request = {**request, "ids": [*ids[:most_ids], f"[cut: {len(ids):,} ids]"]}
    return {
        "id": record.id,
        "at": moment(replayed.at),
        "count": record.count,
        "matching": record.matching,
        "is_dry_run": False,
        "request": request,
    }


OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/replays",
        name="list_replays",
        summary="List the replays that were asked for over the API, newest first.",
        scope="read",
        handler=list_replays,
        query=LimitQuery,
        answers={200: Replays},
    ),
    Operation(
        method="POST",
        path=f"{API}/replays",
        name="make_replay",
        summary="Put dead jobs back, oldest first, or in a dry run only count them.",
        details="200: a dry run. 201: done; the rate is kept as the jobs' run_at.",
        scope="write",
        handler=make_replay,
        query=NoQuery,
        body=Body(forms=(ReplayBody,)),
        answers={200: ReplayDocument, 201: ReplayDocument},
        problems=(404, 409),
        is_repeatable=True,
    ),
)
