"""`/api/v1/events`: what happens, as a stream of server-sent events."""

from __future__ import annotations

import asyncio
import hashlib

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from perdure.system.connection_limit import client_of
from perdure.web.live import KINDS, Live, Subscription, sse
from perdure.web.operation import API, Operation
from perdure.web.problems import Failed, invalid
from perdure.web.request_context import Call
from perdure.web.schemas.requests import EventsQuery

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = 15.0
SLOWEST = 10.0
"""A client that takes nothing for so many seconds is let go."""


async def stream_events(call: Call) -> Response:
    """The stream; it ends when the client goes, is too slow, or the server stops."""
    kinds = _read_kinds(call.query.kinds)
    if call.request.method == "HEAD":
        return Response(media_type=MEDIA_TYPE)
    live = call.context.live
    subscription = live.subscribe(call.request.headers.get("last-event-id"), _client(call))
    if subscription is None:
        raise Failed(
            "too-many-requests",
            "Too many streams of events are open already, in all or by this client.",
            headers={"Retry-After": "5"},
        )
    return EventStream(live, subscription, kinds)


class EventStream(Response):
    """Sends events until the subscription or the client is gone."""

    media_type = MEDIA_TYPE

    def __init__(self, live: Live, subscription: Subscription, kinds: frozenset[str]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._live = live
        self._subscription = subscription
        self._kinds = kinds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._watch(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await _send(send, b"retry: 2000\n\n")
            await self._pass_on(send)
            await _send(send, b"", is_last=True)
        except TimeoutError:
            pass  # it reads nothing more; returning makes the server close the connection
        finally:
            watching.cancel()
            self._live.unsubscribe(self._subscription)

    async def _pass_on(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + HEARTBEAT
        while not self._subscription.is_closed:
            event = await self._subscription.next(max(0.0, due - clock()))
            if event is not None and event.kind in self._kinds:
                await _send(send, sse(event, self._live.name(event)))
            elif clock() >= due and not self._subscription.is_closed:
                # Events of other kinds keep no connection alive, so what counts is what was sent.
                await _send(send, b": beat\n\n")
            else:
                continue
            due = clock() + HEARTBEAT

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscription.close()


async def _send(send: Send, data: bytes, *, is_last: bool = False) -> None:
    async with asyncio.timeout(SLOWEST):
        await send({"type": "http.response.body", "body": data, "more_body": not is_last})


def _client(call: Call) -> str:
    """Whose stream it is: that of a token, or of an address where none is asked for."""
    given = call.request.headers.get("authorization", "").split()
    if call.context.access.tokens and given:
        # Only the secret counts: the same token must not become another one by a space more.
        return hashlib.sha256(given[-1].encode()).hexdigest()
    return client_of(call.request.scope.get("client"))


def _read_kinds(text: str | None) -> frozenset[str]:
    if text is None:
        return KINDS
    kinds = frozenset(part.strip() for part in text.split(","))
    if not kinds <= KINDS:
        raise invalid(f"kinds has one that is not known. There are: {', '.join(sorted(KINDS))}.", parameter="kinds")
    return kinds


OPERATIONS = (
    Operation(
        method="GET",
        path=f"{API}/events",
        name="stream_events",
        summary="What happens, as server-sent events: stats, queue, job and trouble.",
        details="`Last-Event-ID` goes on where a lost connection was, while the events since are kept.",
        scope="read",
        handler=stream_events,
        query=EventsQuery,
        answers={200: str},
        media_type=MEDIA_TYPE,
        problems=(429,),
    ),
)
