"""Takes the connections of the API in, as many as the limits allow, and survives a lack of descriptors.

asyncio's own server logs every connection that it cannot accept, again and again, and knows no limits; so the listening
socket is read here. The acceptor stops with `close()`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from perdure.system.connection_limit import ConnectionLimit, client_of
from perdure.system.exhaustion import is_exhaustion
from perdure.system.log_limit import LogLimit
from perdure.web.server.deadlines import BoundedProtocol, Deadlines, Sweeper

BACKLOG = 512
"""How many connections the system holds ready that have not been accepted."""
_AT_ONCE = 64
"""How many connections are accepted before the event loop closes those that made room for them, at most."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
"""Between these lies how many seconds to wait when no connection can be accepted."""
_PENDING = 64 * 1024
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 31\r\n\r\ntoo many connections are open.\n"
)

_log = logging.getLogger("perdure.web")


class Acceptor:
    """Reads one listening socket; its `close` and `wait_closed` are those that uvicorn asks of a server."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], BoundedProtocol],
        limit: ConnectionLimit,
        deadlines: Deadlines,
    ) -> None:
        self._listener = listener
        self._make_protocol = make_protocol
        self._limit = limit
        self._sweeper = Sweeper(limit, deadlines)
        self._loop = asyncio.get_running_loop()
        self._warnings = LogLimit()
        self._pause = _FIRST_PAUSE
        self._retry: asyncio.TimerHandle | None = None
        self._entering: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def start(self) -> None:
        self._listener.setblocking(False)
        self._listener.listen(BACKLOG)
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listener.fileno())
            if self._retry is not None:
                self._retry.cancel()

    async def wait_closed(self) -> None:
        """Nothing is left to be waited for."""

    def _accept(self) -> None:
        for _ in range(min(_AT_ONCE, max(1, self._limit.most // 8))):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # All others concern the system, or the network behind one connection; the next may be accepted.
                self._warnings.warn(_log, "No connection to the API can be accepted: %s", error.strerror or error)
                if is_exhaustion(error):
                    self._wait()
                return
            self._pause = _FIRST_PAUSE
            self._take_in(connection, address)

    def _wait(self) -> None:
        """Leave the socket alone for a while: it stays readable as long as nothing is accepted."""
        self._loop.remove_reader(self._listener.fileno())
        self._retry = self._loop.call_later(self._pause, self._try_again)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _try_again(self) -> None:
        self._retry = None
        if not self._is_closed:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _take_in(self, connection: socket.socket, address: object) -> None:
        client = client_of(address)
        try:
            connection.setblocking(False)
            protocol = self._make_protocol()
            protocol.limit, protocol.counted_as = self._limit, client
            if not self._limit.enter(client, protocol):
                self._warnings.warn(
                    _log, "A connection to the API was refused: %d are open, and none can be closed", len(self._limit)
                )
                _refuse(connection)
                return
        except (OSError, MemoryError) as error:
            connection.close()
            self._warnings.warn(_log, "A connection to the API could not be taken in: %s", error)
            return
        task = self._loop.create_task(self._enter(connection, protocol))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)
        self._sweeper.start()

    async def _enter(self, connection: socket.socket, protocol: BoundedProtocol) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except (OSError, MemoryError, asyncio.CancelledError):
            # The client is gone already, or there is no room to serve it.
            self._limit.leave(protocol.counted_as, protocol)
            connection.close()


def _refuse(connection: socket.socket) -> None:
    """Say that there is no room and close, without waiting for the client."""
    try:
        # A socket that is closed with something unread resets the connection, and the client might not see the answer.
        connection.recv(_PENDING)
    except OSError:
        pass
    try:
        connection.send(_REFUSAL)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    connection.close()
