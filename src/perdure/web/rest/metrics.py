"""`/metrics`: the numbers of this process and of the store, as Prometheus reads them."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from perdure.web.operation import Operation
from perdure.web.request_context import Call
from perdure.web.schemas.requests import NoQuery


async def show_metrics(call: Call) -> Response:
    """The metrics; they say by `perdure_up 0` that the store does not answer."""
    body, media_type = await asyncio.to_thread(call.context.app.render_metrics)
    return Response(body, headers={"Content-Type": media_type})


OPERATIONS = (
    Operation(
        method="GET",
        path="/metrics",
        name="show_metrics",
        summary="The numbers of this process and of the store, for Prometheus.",
        scope="read",
        handler=show_metrics,
        query=NoQuery,
        answers={200: str},
        media_type="text/plain",
    ),
)
