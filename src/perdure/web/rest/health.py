"""`/healthz/…`: whether the server runs, and whether it can do its work right now."""

from __future__ import annotations

import asyncio

from perdure.errors import PerdureError
from perdure.web.operation import Operation
from perdure.web.problems import Failed
from perdure.web.request_context import Answer, Call
from perdure.web.schemas.documents import Health
from perdure.web.schemas.requests import NoQuery

PATIENCE = 5.0
"""How many seconds the engine has to answer."""


async def live(call: Call) -> Answer:
    """The event loop turns, or nobody would answer."""
    return Answer(document={"status": "live"})


async def ready(call: Call) -> Answer:
    """The engine answers now, and its schema is the one that is wanted."""
    if call.context.is_draining:
        raise _not_ready("The server is stopping.")
    try:
        async with asyncio.timeout(PATIENCE):
            store = await call.context.store()
            await store.now()
            schema = await store.schema()
    except TimeoutError:
        raise _not_ready(f"The engine did not answer within {PATIENCE:g} seconds.") from None
    except PerdureError as error:
        # Whoever may ask this may be anybody: what exactly is wrong is for the log and for those with a token.
        raise _not_ready(f"The engine is not available ({type(error).__name__}).") from None
    if not schema.is_current:
        raise _not_ready(f"The store has schema version {schema.found}, and {schema.wanted} is wanted.")
    return Answer(document={"status": "ready", "engine": store.capabilities.engine, "schema": schema.found})


def _not_ready(detail: str) -> Failed:
    return Failed("not-ready", detail, headers={"Retry-After": "2"})


OPERATIONS = (
    Operation(
        method="GET",
        path="/healthz/live",
        name="health_live",
        summary="Whether the server runs.",
        scope=None,
        handler=live,
        query=NoQuery,
        answers={200: Health},
    ),
    Operation(
        method="GET",
        path="/healthz/ready",
        name="health_ready",
        summary="Whether the engine can be reached now and its schema is current.",
        scope=None,
        handler=ready,
        query=NoQuery,
        answers={200: Health},
    ),
)
