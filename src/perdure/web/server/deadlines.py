"""How long a client may take over each part of an exchange with the API, and how its connection ends after that.

The server looks at its connections once in a while, not at every byte: a client that sends a byte now and then gets no
more time than one that sends nothing, and a quick exchange sets no timer at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Literal

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from perdure.system.connection_limit import ConnectionLimit

Phase = Literal["idle", "head", "body", "rest of body", "busy", "write", "closing"]
"""idle: no byte of a request has come · head: some have · body: the head is complete, and the response has not been
sent · rest of body: it has been sent before the body was complete · busy: the server is at work · write: the client
has not taken all of the response · closing: the connection is about to end."""

_SLICE = 16 * 1024
"""How many received bytes are parsed before the length of the head is checked."""
_MOST_HEADERS = 128
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """The most seconds that a client may take."""

    first_byte: float = 10.0
    """From the connection to the first byte of its first request."""
    head: float = 10.0
    """From the first byte of a request to the end of its head."""
    body: float = 60.0
    """From the end of the head to the end of the body; handlers that read a body give it less, see intake.py."""
    rest_of_body: float = 5.0
    """From the end of the response to the end of a body that came too late for it."""
    idle: float = 15.0
    """From a response to the first byte of the next request; longer than what clients keep connections for."""
    write: float = 10.0
    """In this time the client must take `least_written` bytes of what it has not read, or all of it."""
    least_written: int = 80 * 1024
    closing: float = 5.0
    every: float = 0.5
    """How often to look."""

    def of(self, phase: Phase, *, is_first: bool) -> float:
        match phase:
            case "idle":
                return self.first_byte if is_first else self.idle
            case "head":
                return self.head
            case "body":
                return self.body
            case "rest of body":
                return self.rest_of_body
            case "write":
                return self.write
            case "closing":
                return self.closing
            case "busy":
                return float("inf")


class _Parser(h11.Connection):
    """Refuses heads with too many lines, and remembers which status an invalid request is answered with."""

    status = 400

    def next_event(self) -> Any:
        try:
            event = super().next_event()
            if isinstance(event, h11.Request) and len(event.headers) > _MOST_HEADERS:
                raise h11.RemoteProtocolError("too many headers", error_status_hint=431)
        except h11.RemoteProtocolError as error:
            self.status = error.error_status_hint
            raise
        return event


class BoundedProtocol(H11Protocol):
    """A connection to the API: uvicorn's, with a deadline for whatever the client has to do."""

    limit: ConnectionLimit
    counted_as: str
    """The client that the limit counts this connection for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _Parser(h11.SERVER, self.config.h11_max_incomplete_event_size or _SLICE)
        self._phase: tuple[Phase, object, int] = ("idle", None, 0)
        self._drained = 0
        """How often the client has taken most of what there was to be read."""
        self._since = self.loop.time()
        self._unwritten = 0
        self._is_connected = False
        self._is_evicted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_connected = True
        if self._is_evicted:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.limit.leave(self.counted_as, self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # The parser checks the length of a head only while it is incomplete, so it must not get a long one whole.
        for start in range(0, len(data), _SLICE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + _SLICE] if len(data) > _SLICE else data)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # uvicorn's own timer ends with the first byte of the next request, however slowly the rest follows.
        self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request with the status that fits, and close; the answer may have begun already."""
        status = getattr(self.conn, "status", 400)
        if self.conn.our_state is h11.IDLE or self.conn.our_state is h11.SEND_RESPONSE:
            text = msg.encode()
            length = str(len(text))
            headers = [
                ("Content-Type", "text/plain; charset=utf-8"),
                ("Content-Length", length),
                ("Connection", "close"),
            ]
            with contextlib.suppress(h11.LocalProtocolError):
                parts = (h11.Response(status_code=status, headers=headers), h11.Data(data=text), h11.EndOfMessage())
                self.transport.write(b"".join(self.conn.send(part) or b"" for part in parts))
        self.transport.close()

    def resume_writing(self) -> None:
        self._drained += 1
        super().resume_writing()

    def shutdown(self) -> None:
        try:
            super().shutdown()
        except h11.LocalProtocolError:
            self.transport.close()  # after an invalid request there is nothing to be said any more

    def phase(self) -> Phase:
        """What the connection waits for at the moment."""
        if self.transport.get_write_buffer_size():
            return "write"
        if self.transport.is_closing():
            return "closing"
        state = self.conn.their_state
        if state is h11.IDLE:
            return "head" if self.conn.trailing_data[0] else "idle"
        if state is h11.SEND_BODY:
            return "rest of body" if self.cycle.response_complete else "body"
        return "busy"

    def is_waiting(self) -> bool:
        return not self._is_connected or self.phase() != "busy"

    def evict(self) -> None:
        self._is_evicted = True
        if self._is_connected:
            self.transport.abort()

    def look(self, now: float, deadlines: Deadlines) -> None:
        """End the connection if its client has taken too long over what it does now."""
        if not self._is_connected:
            return
        phase = self.phase()
        # A new request is a new exchange, also when no look fell into the one before.
        if self._phase != (phase, self.cycle, self._drained):
            self._phase, self._since = (phase, self.cycle, self._drained), now
            self._unwritten = self.transport.get_write_buffer_size()
        if now - self._since < deadlines.of(phase, is_first=self.cycle is None):
            return
        if phase == "write" and self._unwritten - self.transport.get_write_buffer_size() >= deadlines.least_written:
            self._since, self._unwritten = now, self.transport.get_write_buffer_size()
            return
        if phase == "head" and self.conn.our_state is h11.IDLE:
            self.transport.write(_TOO_LATE)
            self.transport.close()
        elif phase == "idle":
            self.transport.close()
        else:
            self.transport.abort()


class Sweeper:
    """Looks at all connections of a server from time to time, as long as there are any."""

    def __init__(self, limit: ConnectionLimit, deadlines: Deadlines) -> None:
        self._limit = limit
        self._deadlines = deadlines
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to look, unless that is being done; called with every new connection."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._deadlines.every, self._sweep)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for connection in self._limit.guests():
            assert isinstance(connection, BoundedProtocol), "the limit of an API counts its connections only"
            connection.look(now, self._deadlines)
        if len(self._limit):
            self.start()
