"""Runs the API as a process, alone or beside a worker or a scheduler on one event loop, until it is signalled.

The first SIGTERM or SIGINT stops listening, ends the event streams, lets requests and running attempts finish within
the grace time; the second stops at once. The engine need not be there at the start: requests say so until it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, cast

import msgspec
import uvicorn

from perdure.app import App
from perdure.application.assembly import preload, start_backoff
from perdure.configuration.settings import Settings
from perdure.errors import BadOption, EngineError, Refused
from perdure.runtime.children.entry import stop_in_child
from perdure.runtime.liveness.watchdog import Watchdog
from perdure.runtime.periodic.scheduler import LoneScheduler
from perdure.runtime.process import run_to_end
from perdure.runtime.signals import stopping_signals
from perdure.runtime.startup import open_or_stop
from perdure.runtime.worker import Worker
from perdure.system.connection_limit import ConnectionLimit, affordable
from perdure.system.log_limit import LogLimit, RepeatFilter
from perdure.text.printable import one_line
from perdure.web.access import tokens as auth
from perdure.web.app import Api, create_app
from perdure.web.server.acceptor import Acceptor
from perdure.web.server.deadlines import BoundedProtocol, Deadlines

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7373
_LARGEST_HEAD = 32 * 1024
_SEND_BUFFER = 128 * 1024
Beside = Worker | LoneScheduler
"""What may run on the same event loop."""

_log = logging.getLogger("perdure.web")


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API can be reached."""

    url: str
    has_tokens: bool


def serve(
    app: App,
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    tokens: Sequence[str] = (),
    accepts_any_task: bool | None = None,
    make_beside: Callable[[], Beside] | None = None,
    announce: Callable[[Listening], None] = lambda listening: None,
    beside: str = "worker",
    waits: bool = True,
) -> None:
    """Serve until SIGTERM or SIGINT; blocks, and must be called in the main thread.

    While the engine is away at the start, requests say so, and what runs beside the API, which the log calls `beside`,
    waits for it; without `waits` that is raised instead.
    """
    stop_in_child()
    preload()
    api = create_app(app, tokens=tokens, accepts_any_task=accepts_any_task)
    auth.require_binding(api.context.access, host)
    # uvicorn writes a line for every invalid request.
    logging.getLogger("uvicorn.error").addFilter(RepeatFilter(LogLimit()))
    with _bind(host, port) as listener:
        listening = Listening(url=_url(host, listener), has_tokens=bool(api.context.access.tokens))
        server = make_server(api, announce=lambda: announce(listening), grace=app.settings.grace.total_seconds())
        running = _Running(api, listener, server, name=beside, waits=waits)
        try:
            run_to_end(running.run(make_beside), running.watchdog)
        finally:
            app.close()


def make_server(
    api: Api,
    *,
    announce: Callable[[], None] = lambda: None,
    grace: float = 30.0,
    deadlines: Deadlines | None = None,
) -> Server:
    """The server of an API, with the limits of its settings; `serve([listener])` runs it."""
    config = uvicorn.Config(
        api,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Who asks is decided by the address that asks; a proxy's word for another one is not taken.
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_LARGEST_HEAD,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    return Server(config, _connection_limit(api.context.app.settings), deadlines or Deadlines(), announce)


def _connection_limit(settings: Settings) -> ConnectionLimit:
    most = affordable(settings.max_connections)
    if settings.max_connections is not None and most < settings.max_connections:
        _log.warning(
            "max_connections is %d, and the limit of open files allows %d; raise it with `ulimit -n`",
            settings.max_connections,
            most,
        )
    return ConnectionLimit(most, min(most, settings.max_client_connections or max(1, most // 2)))


class Server(uvicorn.Server):
    """A server with limits, which leaves the signals to whoever runs it, and says when it listens."""

    def __init__(
        self, config: uvicorn.Config, limit: ConnectionLimit, deadlines: Deadlines, announce: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.limit = limit
        self._deadlines = deadlines
        self._announce = announce

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # It listens to no socket by itself: the acceptor does, which knows limits.
        await super().startup([])
        for listener in sockets or ():
            acceptor = Acceptor(listener, self._make_protocol, self.limit, self._deadlines)
            acceptor.start()
            self.servers.append(cast("asyncio.Server", acceptor))
        self._announce()

    def _make_protocol(self) -> BoundedProtocol:
        return BoundedProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


class _Running:
    """The parts of one process, and how they stop together."""

    def __init__(self, api: Api, listener: socket.socket, server: Server, *, name: str, waits: bool) -> None:
        self._api = api
        self._name = name
        self._waits = waits
        self._stopping = asyncio.Event()
        self._listener = listener
        self._beside: Beside | None = None
        self._server = server

    async def run(self, make_beside: Callable[[], Beside] | None) -> None:
        loop = asyncio.get_running_loop()
        with stopping_signals(loop, heard=self._heard, stop=self._stop, interrupted=self._interrupted):
            await self._run_parts(make_beside)

    def watchdog(self) -> Watchdog | None:
        """The watchdog of the worker, if there is one."""
        return self._beside.watchdog if isinstance(self._beside, Worker) else None

    def _heard(self) -> None:
        if (watchdog := self.watchdog()) is not None:
            watchdog.signalled()

    def _interrupted(self, frame: FrameType | None) -> None:
        if (watchdog := self.watchdog()) is not None:
            watchdog.interrupted(frame)

    async def _run_parts(self, make_beside: Callable[[], Beside] | None) -> None:
        parts: list[asyncio.Task[Any]] = [asyncio.create_task(self._server.serve([self._listener]))]
        parts.append(asyncio.create_task(self._open() if make_beside is None else self._work(make_beside)))
        try:
            # The store is opened once; whatever else ends, ends the rest.
            pending = set(parts)
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for part in done:
                    part.result()
                if parts[0] in done or (make_beside is not None and parts[-1] in done):
                    self._stop_gently()
        except BaseException:
            self._stop_gently()
            await asyncio.wait(parts)
            for part in parts:
                # The first failure is raised; that the others failed of it too is no news for the log.
                _ = part.cancelled() or part.exception()
            raise

    async def _open(self) -> None:
        try:
            await self._api.context.open()
        except (EngineError, OSError) as error:
            if not self._waits:
                raise
            _log.warning("the store cannot be opened yet: %s", one_line(str(error)))

    async def _work(self, make_beside: Callable[[], Beside]) -> None:
        # In a thread first: it needs the store, and opening it may take its time.
        app = self._api.context.app
        backoff = start_backoff(self._name, app.surroundings, app.observer) if self._waits else None
        if not await open_or_stop(self._api.context.open, backoff=backoff, stopping=self._stopping):
            return
        beside = self._beside = make_beside()
        if isinstance(beside, Worker):
            beside.watchdog.own_process()
        if self._server.should_exit:
            return
        await (beside.run(waits=self._waits) if isinstance(beside, Worker) else beside.run())

    def _stop(self) -> None:
        if self._server.should_exit:
            self._server.force_exit = True
            if self._beside is not None:
                self._beside.stop()
        self._stop_gently()

    def _stop_gently(self) -> None:
        if not self._server.should_exit:
            self._server.should_exit = True
            self._stopping.set()
            self._api.context.drain()
            if self._beside is not None:
                self._beside.stop()


def _bind(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
    except (socket.gaierror, UnicodeError, OverflowError) as error:
        raise BadOption(f"The host {host!r} is none that this machine knows.", "Give one of its addresses.") from error
    try:
        listener = socket.create_server(address[:2], family=family)
        # Taken over by every connection: what the system keeps for a client that reads nothing is bounded, too.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        return listener
    except OSError as error:
        raise Refused(
            f"The API cannot listen on {host}, port {port}: {error.strerror}.",
            "Give another --port, or stop what listens there.",
        ) from None


def _url(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
