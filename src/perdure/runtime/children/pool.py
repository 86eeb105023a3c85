"""Runs attempts in child processes, one at a time in each: a child can be killed, and its crash costs one job only.

Children are reused. An attempt that finds none idle waits for about as long as a new one would take to start, and
only then starts it: short attempts share a few children, long ones get one each. The end of a child's process is known
at once; the attempt that it ran then ends `Vanished`. Whatever a child sends carries the token of the call that it is
about. A child that sends anything else is killed, and no other attempt is touched by it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
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
from perdure.runtime.children.channel import BadFrame, Channel
from perdure.runtime.children.child import Answer, Begin, Call, FromChild, Hello, Ready
from perdure.runtime.children.entry import Entry
from perdure.runtime.handler import Handler

_START_UP = 0.5
"""How many seconds a child takes to start and to import its app, roughly."""

_BESIDE_RESULT = 1_000_000
"""How many bytes an answer may have beside the result: the texts of an error are much shorter."""


class Children:
    """The children of one worker."""

    def __init__(self, entry: Entry | None = None) -> None:
        """`entry` is what each child imports before it imports the module of a task."""
        self._entry = entry or Entry()
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
            token=secrets.token_hex(16),
            job=job,
            module=reference[0],
            name=reference[1],
            max_attempts=max_attempts,
            max_payload=handler.max_payload,
            max_result=handler.max_result,
            timeout=timeout,
        )
        child = await self._prepared(call)
        if isinstance(child, Vanished):
            return child
        is_reusable = False
        try:
            await may_start()
            async with asyncio.timeout(None if timeout is None else timeout.total_seconds()):
                answer = await child.begin(call)
            is_reusable = answer.is_reusable
            return answer.ending
        except TimeoutError:
            assert timeout is not None
            return TimedOut(timeout=timeout)
        except (EOFError, BadFrame) as error:
            return await child.vanished(error)
        finally:
            self._return(child, is_reusable=is_reusable)

    async def _prepared(self, call: Call) -> _Child | Vanished:
        """A child that is ready to begin the call; else how the attempt ends.

        A child that was used before may have died or gone astray meanwhile. That costs this attempt nothing, since it
        has not begun: another child takes its place. What a new child does with the call counts.
        """
        while True:
            child = await self._take()
            is_ready = False
            try:
                await child.prepare(call)
                is_ready = True
                return child
            except (EOFError, BadFrame) as error:
                if not child.was_used:
                    return await child.vanished(error)
            finally:
                if not is_ready:
                    self._return(child, is_reusable=False)

    def _return(self, child: _Child, *, is_reusable: bool) -> None:
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
            return await _Child.start(self._entry)
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
    """One child process and the channel to it."""

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        self._process = process
        self._channel = channel
        self.was_used = False
        """Whether it has run an attempt before."""

    @classmethod
    async def start(cls, entry: Entry) -> _Child:
        ours, theirs = socket.socketpair()
        try:
            # Starting takes a millisecond; asyncio's own processes would need a child watcher per loop.
            process = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-c", "from perdure.runtime.children.child import main; main()", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        finally:
            theirs.close()
        child = cls(process, Channel(ours, process))
        path = [part or "." for part in sys.path]
        try:
            await child._channel.send(msgspec.json.encode(Hello(path=path, entry=entry, worker=os.getpid())))
        except EOFError:
            pass  # whoever uses it finds out
        except BaseException:
            child.kill()
            raise
        return child

    async def prepare(self, call: Call) -> None:
        """Hand over a call, and wait until the child has found its handler."""
        if not self._channel.is_quiet and self.was_used:
            raise BadFrame("it sent something before it was asked")
        self._channel.expect(2 * call.max_result + _BESIDE_RESULT)
        await self._channel.send(msgspec.json.encode(call))
        message = await self._receive()
        if not isinstance(message, Ready) or message.token != call.token:
            raise BadFrame("it answered for another attempt")

    async def begin(self, call: Call) -> Answer:
        """Let the child enter the handler, and wait for its answer."""
        await self._channel.send(msgspec.json.encode(Begin(token=call.token)))
        answer = await self._receive()
        if not isinstance(answer, Answer) or not answer.is_for(call):
            raise BadFrame("it answered for another attempt")
        self.was_used = True
        return answer

    async def _receive(self) -> FromChild:
        try:
            message: FromChild = msgspec.json.decode(await self._channel.receive(), type=FromChild)
            return message
        except msgspec.MsgspecError:
            raise BadFrame("it sent something that is no answer") from None

    async def vanished(self, error: EOFError | BadFrame) -> Vanished:
        """The ending of an attempt whose child is gone, or sent what it must not send and is to be killed."""
        how = f"is killed: {error}" if isinstance(error, BadFrame) else await self._how_it_ended()
        return Vanished(detail=f"the child process that ran it {how}")

    async def _how_it_ended(self) -> str:
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
        self._channel.close()


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
