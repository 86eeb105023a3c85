"""The small HTTP server of a worker: `/metrics`, `/healthz/live` and `/healthz/ready`, beside the event loop.

It answers while the event loop is blocked, and says so. It serves GET and HEAD, a few requests at a time, keeps a
bounded number of connections, and ends each of them after a few seconds.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from time import sleep
from typing import Any, cast

import msgspec

from perdure.errors import Refused
from perdure.system.clock import SystemClock
from perdure.system.connection_limit import ConnectionLimit, client_of
from perdure.system.log_limit import LogLimit

Answer = tuple[HTTPStatus, bytes, str]

_PLAIN = "text/plain; charset=utf-8"
_PATIENCE = 5.0
_AT_ONCE = 8
_MOST_CONNECTIONS = 32
_MOST_PER_CLIENT = 16
"""How many connections are open at once, in all and from one address; each has a thread."""
_LONGEST_HEAD = 16 * 1024
_NO_ACCEPT = 0.2
"""How many seconds to wait before the next try when no connection can be accepted."""

logger = logging.getLogger("perdure")


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """The most seconds that a connection takes."""

    head: float = 5.0
    """From the connection to the end of the request's head."""
    answer: float = 15.0
    """From there to the end of the answer."""


class Endpoint:
    """A listening server; `close()` ends it."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        render: Callable[[], tuple[bytes, str]],
        is_alive: Callable[[], bool],
        problems: Callable[[], list[str]],
        deadlines: Deadlines | None = None,
    ) -> None:
        """`problems` says why the worker is not ready; an empty list when it is."""
        self._render = render
        self._is_alive = is_alive
        self._problems = problems
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        try:
            self._server = _Server((host, port), _handler(self._answer, self._room), deadlines or Deadlines())
        except (OSError, OverflowError) as error:
            raise Refused(
                f"The metrics cannot be served at {host}:{port}: {error}.",
                "Choose another port or address; the worker processes of one command take consecutive ports.",
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="perdure-endpoint", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens, as a URL."""
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_PATIENCE)

    def _answer(self, path: str) -> Answer:
        match path.partition("?")[0]:
            case "/metrics":
                body, kind = self._render()
                return HTTPStatus.OK, body, kind
            case "/healthz/live":
                if self._is_alive():
                    return HTTPStatus.OK, b"alive\n", _PLAIN
                return HTTPStatus.SERVICE_UNAVAILABLE, b"the event loop does not turn\n", _PLAIN
            case "/healthz/ready":
                problems = self._problems()
                if not problems:
                    return HTTPStatus.OK, b"ready\n", _PLAIN
                return HTTPStatus.SERVICE_UNAVAILABLE, ("\n".join(problems) + "\n").encode(), _PLAIN
            case _:
                known = b"not here; there are /metrics, /healthz/live and /healthz/ready\n"
                return HTTPStatus.NOT_FOUND, known, _PLAIN


class _Visit:
    """One connection: how long it may take, and whether it has said what it wants."""

    def __init__(self, connection: socket.socket, client: str, deadline: float) -> None:
        self.connection = connection
        self.client = client
        self.deadline = deadline
        self.has_asked = False

    def is_waiting(self) -> bool:
        return not self.has_asked

    def evict(self) -> None:
        """End the connection in the middle of whatever its thread does with it; the thread then closes it."""
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the client was faster


class _Server(ThreadingHTTPServer):
    """A thread for each connection, and a bounded number of them; the thread that accepts keeps the deadlines."""

    daemon_threads = True
    # Threads of clients that are still served when the worker ends are not waited for.
    block_on_close = False
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], deadlines: Deadlines) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._deadlines = deadlines
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._limit = ConnectionLimit(_MOST_CONNECTIONS, _MOST_PER_CLIENT)
        self._visits: dict[socket.socket, _Visit] = {}
        self._warnings = LogLimit()
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if not isinstance(error, BlockingIOError | InterruptedError | ConnectionAbortedError):
                self._warnings.warn(logger, "No connection to the metrics can be accepted: %s", error.strerror)
                # The socket stays readable, and would be read again at once.
                sleep(_NO_ACCEPT)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more connection."""
        visit = _Visit(request, client_of(client_address), self._clock.monotonic() + self._deadlines.head)
        with self._lock:
            # A thread that was evicted counts until it has ended, so that there is never any number of them.
            has_room = len(self._visits) < 2 * _MOST_CONNECTIONS and self._limit.enter(visit.client, visit)
            if has_room:
                self._visits[request] = visit
        if not has_room:
            self._warnings.warn(logger, "A connection to the metrics was refused: %d are open", len(self._limit))
        return has_room

    def service_actions(self) -> None:
        """End connections that have taken too long; called between two connections, and every moment."""
        now = self._clock.monotonic()
        with self._lock:
            late = [visit for visit in self._visits.values() if visit.deadline <= now]
        for visit in late:
            visit.evict()

    def has_asked(self, request: Any) -> None:
        """The request is complete: from now on the answer has its time."""
        with self._lock:
            visit = self._visits.get(request)
            if visit is not None:
                visit.has_asked = True
                visit.deadline = self._clock.monotonic() + self._deadlines.answer

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            visit = self._visits.pop(request, None)
            if visit is not None:
                self._limit.leave(visit.client, visit)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle, or for which there is no thread, is no news."""


class _Head:
    """A request's bytes, as many as a head may have."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self._left = _LONGEST_HEAD

    def readline(self, limit: int = -1) -> bytes:
        line = self._stream.readline(self._left if limit < 0 else min(limit, self._left))
        self._left -= len(line)
        if self._left <= 0:
            raise ConnectionAbortedError("the request's head is too long")
        return line

    def close(self) -> None:
        self._stream.close()


def _handler(answer: Callable[[str], Answer], room: threading.BoundedSemaphore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE
        server_version = "perdure"
        sys_version = ""

        def setup(self) -> None:
            super().setup()
            self.rfile = _Head(self.rfile)  # type: ignore[assignment]

        def do_GET(self) -> None:
            self._serve(has_body=True)

        def do_HEAD(self) -> None:
            self._serve(has_body=False)

        def _serve(self, *, has_body: bool) -> None:
            cast("_Server", self.server).has_asked(self.request)
            if not room.acquire(blocking=False):
                self._send(HTTPStatus.SERVICE_UNAVAILABLE, b"too many requests at once\n", _PLAIN, has_body)
                return
            try:
                status, body, kind = answer(self.path)
            except Exception as error:
                text = f"{type(error).__name__}: this could not be found out\n"
                status, body, kind = HTTPStatus.INTERNAL_SERVER_ERROR, text.encode(), _PLAIN
            finally:
                room.release()
            self._send(status, body, kind, has_body)

        def _send(self, status: HTTPStatus, body: bytes, kind: str, has_body: bool) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Connection", "close")
            self.end_headers()
            if has_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a scrape every few seconds is no news."""

    return Handler
