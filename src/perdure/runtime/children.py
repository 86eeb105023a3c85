"""Runs attempts in child processes, one at a time in each: a child can be killed, and its crash costs one job only.

Children are started when an attempt finds none idle and are reused. A child that is killed, or dies, is known at once
through its socket; the attempt then ends `Vanished`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from datetime import timedelta
from signal import Signals

import msgspec

from perdure.model.job import Job
from perdure.model.outcome import Ending, TimedOut, Vanished
from perdure.runtime.child import HEADER, Answer, Call, Hello
from perdure.runtime.handler import Handler


class Children:
    """The children of one worker."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []

    async def run(self, job: Job, handler: Handler, max_attempts: int, timeout: timedelta | None) -> Ending:
        """Run one attempt in a child; a cancelled caller kills the child."""
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
        child = self._idle.pop() if self._idle else await _Child.start()
        is_reusable = False
        try:
            async with asyncio.timeout(None if timeout is None else timeout.total_seconds()) as limit:
                ending = await child.ask(call)
            is_reusable = True
            return ending
        except TimeoutError:
            if not limit.expired():
                raise
            assert timeout is not None
            return TimedOut(timeout=timeout)
        except (EOFError, ConnectionError):
            return Vanished(detail=f"the child process that ran it {await child.how_it_ended()}")
        finally:
            if is_reusable:
                self._idle.append(child)
            else:
                child.kill()

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

    async def ask(self, call: Call) -> Ending:
        self._send(msgspec.json.encode(call))
        await self._writer.drain()
        try:
            header = await self._reader.readexactly(HEADER.size)
            body = await self._reader.readexactly(HEADER.unpack(header)[0])
        except asyncio.IncompleteReadError:
            raise EOFError from None
        return msgspec.json.decode(body, type=Answer).ending

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
