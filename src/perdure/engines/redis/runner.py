"""Runs verbs: in the calling thread, or on the running event loop.

A script that the server does not know is sent whole. If the connection broke, a call is made once more, provided that
making it twice changes nothing. If the server has become a replica, the new primary is looked for. All other
errors reach the caller as errors of Perdure.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from perdure.engines.redis.address import Address
from perdure.engines.redis.client import LoopClient, ThreadClient
from perdure.engines.redis.fault import IN_DOUBT, kind_of, to_perdure_error
from perdure.engines.redis.lua import script
from perdure.engines.redis.verb import Argument, Call, Verb
from perdure.engines.redis.wire import Command, NoScriptError, pack
from perdure.system.clock import Clock, SystemClock

T = TypeVar("T")


class Runner:
    """The clients of an open store, and how verbs are done with them."""

    def __init__(self, address: Address, clock: Clock, sender: str, check_open: Callable[[], None]) -> None:
        self.address = address
        self.client = ThreadClient(address)
        self._clock = None if isinstance(clock, SystemClock) else clock
        self.is_timeless = self._clock is None
        """Whether the server tells the time, so that the same call is always packed the same."""
        self._sender = sender if address.has_hints else ""
        self._check_open = check_open
        self._loops: dict[asyncio.AbstractEventLoop, LoopClient] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._busy = 0
        self._is_closing = False
        self._tag = address.tag

    def run_verb(self, verb: Verb[T]) -> T:
        """Do a verb in this thread."""
        self._check_open()
        with self._lock:
            self._busy += 1
        try:
            call = next(verb)
            while True:
                call = verb.send(self._do(call))
        except StopIteration as done:
            result: T = done.value
            return result
        except Exception as error:
            raise self._seen(error) from _cause(error)
        finally:
            self._done()

    def run_packed(self, packed: bytes, call: Callable[[], Call]) -> Any:
        """Do one call in this thread that is packed already: the same as a verb that makes this call alone."""
        self._check_open()
        with self._lock:
            self._busy += 1
        try:
            try:
                return self.client.send_packed(packed)
            except Exception as error:
                return self._do(call(), error)
        except Exception as error:
            raise self._seen(error) from _cause(error)
        finally:
            self._done()

    def pack_beginning(self, call: Call, more: int) -> bytes:
        """A call as it goes over the wire, which so many arguments are still to follow."""
        command = self._command(call)
        return b"*%d\r\n%b" % (len(command) + more, pack(*command).partition(b"\r\n")[2])

    async def run_verb_on_loop(self, verb: Verb[T]) -> T:
        """Do a verb on the running event loop."""
        try:
            self._check_open()
            client = await self._client_of_loop()
            call = next(verb)
            while True:
                call = verb.send(await self._do_on_loop(client, call))
        except StopIteration as done:
            result: T = done.value
            return result
        except Exception as error:
            raise self._seen(error) from _cause(error)

    def close(self) -> None:
        """Let the connections go when the calls on their way are answered; each has its own time limit."""
        with self._idle:
            self._is_closing = True
            self._idle.wait_for(lambda: self._busy == 0, timeout=self.address.timeout)
            clients, self._loops = list(self._loops.values()), {}
        self.client.close()
        for client in clients:
            self._close_on_loop(client)

    def _done(self) -> None:
        with self._lock:
            self._busy -= 1
            if self._busy == 0 and self._is_closing:
                self._idle.notify_all()

    def _do(self, call: Call, failed: Exception | None = None) -> Any:
        """The answer to a call, which may have `failed` once already."""
        tries = _Tries(call)
        while True:
            try:
                try:
                    if failed is not None:
                        error, failed = failed, None
                        raise error
                    return self.client.send(self._command(call), is_write=call.is_write)
                except NoScriptError:
                    return self.client.send(self._whole(call), is_write=call.is_write)
            except Exception as error:
                if tries.after(error) == "drop":
                    self.client.drop()

    async def _do_on_loop(self, client: LoopClient, call: Call) -> Any:
        tries = _Tries(call)
        while True:
            try:
                try:
                    return await client.send(self._command(call), is_write=call.is_write, waiting=call.waiting)
                except NoScriptError:
                    return await client.send(self._whole(call), is_write=call.is_write)
            except Exception as error:
                if tries.after(error) == "drop":
                    await client.drop()

    def _command(self, call: Call) -> Command:
        return ("EVALSHA", script(call.script).sha, *self._rest(call))

    def _whole(self, call: Call) -> Command:
        """The call with the script's text: the server learns it by the way."""
        return ("EVAL", script(call.script).text, *self._rest(call))

    def _rest(self, call: Call) -> tuple[Argument, ...]:
        now = b"" if self._clock is None else self._clock.microseconds()
        return (1, self._tag, now, self._sender, *call.arguments)

    async def _client_of_loop(self) -> LoopClient:
        loop = asyncio.get_running_loop()
        client = self._loops.get(loop)
        if client is None:
            client = LoopClient(self.address)
            with self._lock:
                for other in [other for other in self._loops if other.is_closed()]:
                    del self._loops[other]
                self._loops[loop] = client
            await client.begin()
        return client

    def _close_on_loop(self, client: LoopClient) -> None:
        if not client.loop.is_running():
            return  # its connections are closed with the loop
        try:
            is_here = asyncio.get_running_loop() is client.loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._close_soon(client)
            return
        try:
            asyncio.run_coroutine_threadsafe(client.close(), client.loop).result(self.address.timeout)
        except (RuntimeError, TimeoutError, asyncio.CancelledError):
            pass  # the loop ended meanwhile, or is blocked: then the connections go with it

    def _close_soon(self, client: LoopClient) -> None:
        """Close on the running loop, which cannot wait for it here."""
        task = client.loop.create_task(client.close())
        self._closing.add(task)
        # A loop that ends at once cancels the task before it begins: then the client must live to be closed with it.
        anchor = client.loop.call_later(self.address.timeout, id, client)

        def done(task: asyncio.Task[None]) -> None:
            self._closing.discard(task)
            if not task.cancelled():
                anchor.cancel()

        task.add_done_callback(done)

    def _seen(self, error: Exception) -> BaseException:
        return to_perdure_error(error, self.address.name)


class _Tries:
    """Whether a call that failed is to be tried again."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._is_second = False

    def after(self, error: Exception) -> str:
        """What to do before the next try; raises the error when there is none."""
        kind = kind_of(error)
        if kind in IN_DOUBT and self._call.when_in_doubt is not None:
            self._call.when_in_doubt()
        if self._is_second:
            raise error
        self._is_second = True
        if kind == "read-only":
            return "drop"
        if kind == "lost" and self._call.is_repeatable:
            return "again"
        raise error


def _cause(error: Exception) -> BaseException | None:
    """What the error that the caller sees is shown to come from."""
    return error.__cause__ if error.__cause__ is not None else error
