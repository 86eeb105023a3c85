"""Runs `def` handlers in daemon threads; a thread that outlives its attempt is given up and replaced.

A thread waits for a call, runs it, and answers on the event loop; what several threads answer before the loop gets to
it reaches it in one go. Threads are started when a call finds none idle. A Python thread cannot be killed: when an
attempt is abandoned, an `Interrupted` is raised inside it, which ends pure Python code; a thread stuck in C code lives
on, without a slot and without a say.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from perdure.runtime.context import running
from perdure.runtime.liveness.fork_guard import enters_handlers, leave_copy

Answer = tuple[Any, BaseException | None]

_NO_THREAD = 0.1
"""How many seconds to wait before a thread is tried again that could not be started."""


class Interrupted(BaseException):
    """Raised inside a handler's thread whose attempt is over for others: it timed out, was cancelled or released."""


class Call:
    """One call on its way through a thread."""

    __slots__ = ("context", "future", "is_abandoned", "post", "thread", "work")

    def __init__(self, work: Callable[[], Any], context: Context, post: Post) -> None:
        self.work = work
        self.context = context
        self.post = post
        self.future: asyncio.Future[Answer] = post.loop.create_future()
        self.thread: int | None = None
        self.is_abandoned = False

    def was_abandoned(self) -> bool:
        return self.is_abandoned


class Post:
    """Carries answers to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._answers: deque[tuple[asyncio.Future[Answer], Answer]] = deque()
        self._is_called = False

    def send(self, future: asyncio.Future[Answer], answer: Answer) -> None:
        """Deliver an answer soon; raises RuntimeError when the loop is closed."""
        self._answers.append((future, answer))
        # Looked at after the answer is there, and taken back before answers are taken out: none stays behind.
        if not self._is_called:
            self._is_called = True
            self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_called = False
        while self._answers:
            future, answer = self._answers.popleft()
            if not future.done():
                future.set_result(answer)


class Threads:
    """Room for any number of calls at once."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._idle = 0
        self._count = 0
        self._lock = threading.Lock()
        self._post: Post | None = None

    def start(self, work: Callable[[], Any], context: Context) -> Call:
        """Begin a call; its future gives (value, None) or (None, what it raised)."""
        loop = asyncio.get_running_loop()
        if self._post is None or self._post.loop is not loop:
            self._post = Post(loop)
        call = Call(work, context, self._post)
        with self._lock:
            # An idle thread is counted out by the call that it is meant for, so that no two calls count on one.
            needs_thread = self._idle == 0
            if needs_thread:
                self._count += 1
            else:
                self._idle -= 1
        self._calls.put(call)
        if needs_thread:
            self._start_thread(loop)
        return call

    def _start_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            threading.Thread(target=self._serve, name=f"perdure-handler-{self._count}", daemon=True).start()
        except RuntimeError:
            # The system grants no more threads for now. The call waits in line, where a thread that becomes free may
            # take it; this one is counted already, so it is started in any case once that is possible.
            loop.call_later(_NO_THREAD, self._start_thread, loop)

    def abandon(self, call: Call) -> None:
        """Stop caring about a call, and try to end it."""
        with self._lock:
            call.is_abandoned = True
            if call.thread is not None:
                _raise_in(call.thread, Interrupted)

    def close(self) -> None:
        """Let idle threads go; busy ones are daemons and end with the process."""
        with self._lock:
            for _ in range(self._count):
                self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            answer = self._run(call)
            with self._lock:
                self._idle += 1
            if answer is not None:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    call.post.send(call.future, answer)

    @enters_handlers
    def _run(self, call: Call) -> Answer | None:
        """What came of the call; None when nobody waits for it any more."""
        try:
            with self._lock:
                if call.was_abandoned():
                    return None
                call.thread = threading.get_ident()
            answer: Answer
            try:
                answer = (call.context.run(call.work), None)
            except BaseException as error:  # SystemExit and KeyboardInterrupt are the handler's, not ours
                answer = (None, error)
            _leave_copy(call, answer[1])
            with self._lock:
                call.thread = None
                # An Interrupted that is under way arrives with this call at the latest.
                return None if call.was_abandoned() else answer
        except Interrupted:
            return None


def _leave_copy(call: Call, error: BaseException | None) -> None:
    entered = call.context.get(running)
    if entered is not None:
        leave_copy(entered, error)


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
