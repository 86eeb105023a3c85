"""Runs `def` handlers in daemon threads; a thread that outlives its attempt is given up and replaced.

A thread waits for a call, runs it, and answers on the event loop. Threads are started when a call finds none idle, up
to the limit. A Python thread cannot be killed: when an attempt is abandoned, an `Interrupted` is raised inside it,
which ends pure Python code; a thread stuck in C code lives on, without a slot and without a say.
"""

from __future__ import annotations

import asyncio
import ctypes
import queue
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any


class Interrupted(BaseException):
    """Raised inside a handler's thread whose attempt is over for others: it timed out, was cancelled or released."""


class Call:
    """One call on its way through a thread."""

    __slots__ = ("context", "future", "is_abandoned", "lock", "loop", "thread", "work")

    def __init__(self, work: Callable[[], Any], context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.context = context
        self.loop = loop
        self.future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        self.thread: int | None = None
        self.is_abandoned = False
        self.lock = threading.Lock()

    def was_abandoned(self) -> bool:
        return self.is_abandoned


class Threads:
    """Room for a number of calls at once."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._idle = 0
        self._count = 0
        self._lock = threading.Lock()

    def start(self, work: Callable[[], Any], context: Context) -> Call:
        """Begin a call; its future gives (value, None) or (None, what it raised)."""
        call = Call(work, context, asyncio.get_running_loop())
        with self._lock:
            spare = self._idle - self._calls.qsize()
            if spare <= 0:
                self._count += 1
                threading.Thread(target=self._serve, name=f"perdure-handler-{self._count}", daemon=True).start()
        self._calls.put(call)
        return call

    def abandon(self, call: Call) -> None:
        """Stop caring about a call, and try to end it."""
        with call.lock:
            call.is_abandoned = True
            if call.thread is not None:
                _raise_in(call.thread, Interrupted)

    def close(self) -> None:
        """Let idle threads go; busy ones are daemons and end with the process."""
        with self._lock:
            for _ in range(self._count):
                self._calls.put(None)

    def _serve(self) -> None:
        while True:
            call = self._next()
            if call is None or not self._run(call):
                return

    def _next(self) -> Call | None:
        with self._lock:
            self._idle += 1
        try:
            return self._calls.get()
        finally:
            with self._lock:
                self._idle -= 1

    def _run(self, call: Call) -> bool:
        """Run one call; whether this thread goes on to the next."""
        try:
            with call.lock:
                if call.was_abandoned():
                    return True
                call.thread = threading.get_ident()
            answer: tuple[Any, BaseException | None]
            try:
                answer = (call.context.run(call.work), None)
            except BaseException as error:  # SystemExit and KeyboardInterrupt are the handler's, not ours
                answer = (None, error)
            with call.lock:
                call.thread = None
                if call.was_abandoned():
                    return True
            call.loop.call_soon_threadsafe(_answer, call.future, answer)
        except Interrupted:
            return True
        except RuntimeError:
            return False  # the loop is closed: nobody waits any more
        return True


def _answer(future: asyncio.Future[Any], answer: tuple[Any, BaseException | None]) -> None:
    if not future.done():
        future.set_result(answer)


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
