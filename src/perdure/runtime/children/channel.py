"""The worker's end of the socket to a child process: frames both ways, and the end of the process.

A frame is its length in four bytes and its content. Everything that a child wrote before it ended is still received.
While memory is short, the worker reads again after a pause; what the child has sent waits in the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import subprocess
from collections import deque
from collections.abc import Callable

from perdure.runtime.children.exit_watch import ExitWatch
from perdure.system.log_limit import LogLimit

HEADER = struct.Struct("!I")
_CHUNK = 1 << 16
"""The most bytes that are read at once."""
_LARGEST = 1 << 20
"""The most bytes of a frame, until `expect` says otherwise."""
_PAUSE = 0.1
"""The seconds until the next try after a lack of memory."""

_log = logging.getLogger("perdure")
_warnings = LogLimit()


class BadFrame(Exception):  # noqa: N818 - what the child sent, not what went wrong here
    """The child sent something that it must not send now."""


class Channel:
    """One socket to one child; used on the event loop that made it."""

    def __init__(self, own: socket.socket, process: subprocess.Popen[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = own
        self._socket.setblocking(False)
        self._pieces = bytearray()
        self._frames: deque[bytes] = deque()
        self._changed: asyncio.Future[None] | None = None
        self._is_over = False
        self._is_bad = False
        self._largest = _LARGEST
        self._is_reading = True
        self._loop.add_reader(self._socket, self._arrived)
        self._watch = ExitWatch(process, self._drain)

    def expect(self, largest: int) -> None:
        """Take frames up to so many bytes; a longer one is a bad frame."""
        self._largest = largest

    @property
    def is_quiet(self) -> bool:
        """Whether the child lives and has sent nothing that nobody waited for."""
        return not (self._is_over or self._is_bad or self._frames or self._pieces)

    async def send(self, content: bytes) -> None:
        """Send a frame; raises EOFError when the child ends before it has taken it."""
        sending = asyncio.ensure_future(self._loop.sock_sendall(self._socket, HEADER.pack(len(content)) + content))
        try:
            while not sending.done() and not self._is_over:
                await asyncio.wait([sending, self._next_change()], return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise EOFError
            try:
                sending.result()
            except OSError:
                raise EOFError from None
        finally:
            sending.cancel()

    async def receive(self) -> bytes:
        """The next frame; raises EOFError when the child ended without one, and BadFrame for what is none."""
        while not self._frames:
            if self._is_bad:
                raise BadFrame("the child sent a frame that is too long")
            if self._is_over:
                raise EOFError
            await self._next_change()
        return self._frames.popleft()

    def close(self) -> None:
        """Close the socket and stop watching."""
        self._watch.close()
        self._stop_reading()
        self._socket.close()

    def _next_change(self) -> asyncio.Future[None]:
        if self._changed is None or self._changed.done():
            self._changed = self._loop.create_future()
        return self._changed

    def _arrived(self) -> None:
        try:
            self._read()
        except MemoryError:
            # Without a pause the loop would call this again at once, and do nothing else.
            if self._try_later(self._read_again):
                self._stop_reading()

    def _read_again(self) -> None:
        if not self._is_over and not self._is_reading and self._socket.fileno() >= 0:
            self._is_reading = True
            self._loop.add_reader(self._socket, self._arrived)

    def _try_later(self, call: Callable[[], None]) -> bool:
        """Make a call after a pause; whether there was enough memory even for that."""
        try:
            self._loop.call_later(_PAUSE, call)
        except MemoryError:
            return False
        with contextlib.suppress(MemoryError):
            _warnings.warn(_log, "An answer of a child process cannot be read yet: there is no memory")
        return True

    def _read(self) -> bool:
        """Take what has arrived; whether there may be more."""
        try:
            part = self._socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            part = b""
        try:
            self._take(part)
        except MemoryError:
            self._is_bad = True  # a part of what the child sent is gone
            self._finish()
        return bool(part) and not self._is_bad

    def _drain(self) -> None:
        """The process has ended: take what it had written, and expect no more, whoever holds the socket's other end."""
        try:
            while not self._is_over and self._read():
                pass
        except MemoryError:
            if self._try_later(self._drain):
                return
        self._finish()

    def _take(self, part: bytes) -> None:
        self._pieces += part
        while len(self._pieces) >= HEADER.size and not self._is_bad:
            length = HEADER.unpack_from(self._pieces)[0]
            self._is_bad = length > self._largest
            if self._is_bad or len(self._pieces) < HEADER.size + length:
                break
            self._frames.append(bytes(self._pieces[HEADER.size : HEADER.size + length]))
            del self._pieces[: HEADER.size + length]
        if self._is_bad or not part:
            self._finish()
        self._tell()

    def _finish(self) -> None:
        self._is_over = True
        self._stop_reading()
        self._tell()

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            with contextlib.suppress(OSError, ValueError):
                self._loop.remove_reader(self._socket)

    def _tell(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
