"""Runs attempts in child processes, one at a time in each: a child can be killed, and its crash costs one job only.

Children are reused. An attempt that finds none idle waits for about as long as a new one would take to start, and
only then starts it: short attempts share a few children, long ones get one each. A child that is killed, or dies, is
known at once through its socket; the attempt then ends `Vanished`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from signal import Signals

import msgspec

from perdure.model.job import Job
from perdure.model.outcome import Ending, TimedOut, Vanished
from perdure.runtime.child import HEADER, Answer, Call, Hello
from perdure.runtime.handler import Handler

_START_UP = 0.5
"""How many seconds a child takes to start and to import its app, roughly."""


class Children:
    """The children of one worker."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []
        self._waiting: deque[asyncio.Future[_Child]] = deque()
        self._count = 0

    async def run(
        self,
        job: Job,
        handler: Handler,
        max_attempts: int,
        timeout: timedelta | None,
        may_start: Callable[[], Awaitable[None]],
    ) -> Ending:
        """Run one attempt in a child; a cancelled caller kills the child.

        A child may take its time to start. Only when it is ready to begin is `may_start` awaited, and only then does
        the timeout count.
        """
        reference = handler.reference
        assert reference is not None, "only importable handlers are run in children"
        call = Call(
            job=job,
            module=reference[0],
            name=reference[1],
            max_attempts=max_attempts,
            max_payload=handler.max_payload,
            max_result=handler.max_result,
            timeout=timeout,
        )
        child = await self._take()
        is_reusable = False
        try:
            await child.prepare(call)
            await may_start()
            async with asyncio.timeout(None if timeout is None else timeout.total_seconds()):
                ending = await child.begin()
            is_reusable = True
            return ending
        except TimeoutError:
            assert timeout is not None
            return TimedOut(timeout=timeout)
        except (EOFError, ConnectionError):
            return Vanished(detail=f"the child process that ran it {await child.how_it_ended()}")
        finally:
            if is_reusable:
                self._give(child)
            else:
                self._count -= 1
                child.kill()

    async def _take(self) -> _Child:
        """An idle child, one that becomes idle soon, or else a new one."""
        if self._idle:
            return self._idle.pop()
        if self._count:
            soon = await self._next_idle()
            if soon is not None:
                return soon
        self._count += 1
        try:
            return await _Child.start()
        except BaseException:
            self._count -= 1
            raise

    async def _next_idle(self) -> _Child | None:
        """The next child that becomes idle, unless starting one is quicker."""
        free: asyncio.Future[_Child] = asyncio.get_running_loop().create_future()
        self._waiting.append(free)
        try:
            async with asyncio.timeout(_START_UP):
                return await free
        except TimeoutError:
            return free.result() if free.done() and not free.cancelled() else None
        except asyncio.CancelledError:
            if free.done() and not free.cancelled():
                self._give(free.result())
            raise

    def _give(self, child: _Child) -> None:
        """Hand a child to whoever waits longest for one, or keep it for the next."""
        while self._waiting:
            free = self._waiting.popleft()
            if not free.done():
                free.set_result(child)
                return
        self._idle.append(child)

    def close(self) -> None:
        """Kill the idle children; busy ones are killed by the cancellation of their attempts."""
        for child in self._idle:
            child.kill()
        self._idle.clear()


class _Child:
    """One child process and the socket to it."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> _Child:
        ours, theirs = socket.socketpair()
        try:
            # Starting takes a millisecond; asyncio's own processes would need a child watcher per loop.
            process = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-c", "from perdure.runtime.child import main; main()", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        child = cls(process, reader, writer)
        main = sys.modules.get("__main__")
        path = [part or "." for part in sys.path]
        child._send(msgspec.json.encode(Hello(path=path, main=_file_of(main), worker=os.getpid())))
        return child

    async def prepare(self, call: Call) -> None:
        """Hand over a call, and wait until the child has found its handler."""
        self._send(msgspec.json.encode(call))
        await self._writer.drain()
        await self._receive()

    async def begin(self) -> Ending:
        """Let the child enter the handler, and wait for the ending."""
        self._send(b"")
        return msgspec.json.decode(await self._receive(), type=Answer).ending

    async def _receive(self) -> bytes:
        try:
            header = await self._reader.readexactly(HEADER.size)
            return await self._reader.readexactly(HEADER.unpack(header)[0])
        except asyncio.IncompleteReadError:
            raise EOFError from None

    async def how_it_ended(self) -> str:
        """What became of a child whose socket is closed."""
        for _ in range(200):
            code = self._process.poll()
            if code is not None:
                return f"was ended by {_signal_name(-code)}" if code < 0 else f"exited with code {code}"
            await asyncio.sleep(0.01)
        return "closed its connection"

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._writer.close()

    def _send(self, body: bytes) -> None:
        self._writer.write(HEADER.pack(len(body)) + body)


def _file_of(module: object) -> str | None:
    """The script that `__main__` is, where it is one; `python -m` and shells have none that could be run again."""
    if getattr(module, "__spec__", None) is not None:
        return None
    return getattr(module, "__file__", None)


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
