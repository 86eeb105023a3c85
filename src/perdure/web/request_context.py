"""What every handler works with: the app, its open store, the live events, and one request as it was read.

The store is opened when it is first needed, in a thread, once for all who wait for it. While the engine is down each
request says so at once after one try, and the first request after its return finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request

from perdure.app import App
from perdure.errors import EngineUnreachable, Refused, UsageError
from perdure.model.payload.redaction import Redactor
from perdure.runtime.startup import in_daemon_thread
from perdure.store import Store
from perdure.web.access.tokens import Access
from perdure.web.live import Live


class RequestContext:
    """The services of one application."""

    def __init__(self, app: App, *, access: Access, accepts_any_task: bool) -> None:
        self.app = app
        self.access = access
        self.accepts_any_task = accepts_any_task
        self.redactor = Redactor(app.settings.redact)
        self.live = Live(self.store, redactor=self.redactor)
        self.simulating = asyncio.Semaphore(1)
        self.is_draining = False
        self._opening: asyncio.Future[Store] | None = None

    async def store(self) -> Store:
        """The open store; raises EngineError while it cannot be opened."""
        try:
            return await self.open()
        except (UsageError, Refused) as error:
            # A wrong URL or a missing driver is the server's fault, not that of whoever asks.
            raise EngineUnreachable(error.message, error.hint) from error

    async def open(self) -> Store:
        """The same; raises what opening it raises."""
        opened = self.app.opened
        if opened is not None:
            return opened
        if self._opening is None or self._opening.done():
            self._opening = in_daemon_thread(lambda: self.app.store)
            # Whoever waits is told; when nobody waits any more, that is no news for the log.
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._opening)

    def drain(self) -> None:
        """Say not ready from now on, and end the event streams; requests under way are finished."""
        self.is_draining = True
        self.live.close()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, read and checked."""

    context: RequestContext
    request: Request
    path: Mapping[str, str]
    query: Any
    """Of the operation's query type."""
    body: Any
    """Of the operation's body type; None where it has none."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler answers: a document, unless the status has none."""

    document: Any
    status: int = 200
    headers: Mapping[str, str] = {}
