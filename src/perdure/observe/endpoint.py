"""The small HTTP server of a worker: `/metrics`, `/healthz/live` and `/healthz/ready`, beside the event loop.

It answers while the event loop is blocked, and says so. It serves GET and HEAD, a few requests at a time, and gives a
slow client a few seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from perdure.errors import Refused

Answer = tuple[HTTPStatus, bytes, str]

_PLAIN = "text/plain; charset=utf-8"
_PATIENCE = 5.0
_AT_ONCE = 8


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
    ) -> None:
        """`problems` says why the worker is not ready; an empty list when it is."""
        self._render = render
        self._is_alive = is_alive
        self._problems = problems
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        try:
            self._server = _Server((host, port), _handler(self._answer, self._room))
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Threads of clients that are still served when the worker ends are not waited for.
    block_on_close = False
    request_queue_size = 32

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is no news."""


def _handler(answer: Callable[[str], Answer], room: threading.BoundedSemaphore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE
        server_version = "perdure"
        sys_version = ""

        def do_GET(self) -> None:
            self._serve(has_body=True)

        def do_HEAD(self) -> None:
            self._serve(has_body=False)

        def _serve(self, *, has_body: bool) -> None:
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
