"""Finds out how long the event loop of a worker has been blocked, and by which job; used by the watchdog's thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import threading
import traceback
from datetime import timedelta
from types import FrameType

from perdure.model.job import Job
from perdure.runtime.handler import Registry
from perdure.runtime.in_flight import Held, Holding
from perdure.runtime.signals import INTERRUPTING
from perdure.runtime.threads import Interrupted
from perdure.system.clock import Clock
from perdure.system.log_limit import LogLimit

_REPORT_AFTER = 5.0
"""After how many seconds a blocked loop is reported, unless half of `max_block` is less."""

_REPORT_EVERY = 60.0
"""At most one report is logged in this many seconds."""

_STACK = 12
"""How many of the innermost calls of a blocked loop are reported."""

_log = logging.getLogger("perdure")


class LoopBlock:
    """Whether one event loop answers."""

    def __init__(self, *, clock: Clock, registry: Registry, held: Held, max_block: timedelta) -> None:
        """Make it in the thread of the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._registry = registry
        self._held = held
        self._limit = max_block.total_seconds()
        self._reports = LogLimit(every=_REPORT_EVERY, clock=clock)
        self._answered = True
        self._is_reported = False
        self._interrupting: Holding | None = None
        self.seconds = 0.0
        """For how long the loop has not answered."""
        self.can_interrupt = False
        """Whether the loop runs in the main thread and `interrupted` is called there on SIGURG."""

    def look(self, passed: float, *, is_stopping: bool = False) -> None:
        """Ask the loop for an answer, or count the seconds that passed without one."""
        if self._answered:
            self._answered, self._is_reported, self._interrupting = False, False, None
            self.seconds = 0.0
            with contextlib.suppress(RuntimeError):  # closed meanwhile, which the watchdog finds by itself
                self._loop.call_soon_threadsafe(self._answer)
            return
        self.seconds += passed
        if not self._is_reported and self.seconds >= min(_REPORT_AFTER, self._limit / 2):
            self._is_reported = True
            self._report()
        if self.can_interrupt:
            self._interrupt_late_attempt()
            if is_stopping:
                # Python runs the handler of that signal in the main thread, which may have to wake up for it.
                signal.pthread_kill(self._thread, INTERRUPTING)

    def culprit(self) -> tuple[Holding | None, str]:
        """What runs on the loop now: the held job, if it is one, and its name."""
        task = asyncio.current_task(self._loop)
        if task is None:
            return None, "a callback"
        holding = next((each for each in self._held.all() if each.runner is task), None)
        if holding is not None:
            return holding, f"task {holding.job.task!r}, job {holding.job.id}, attempt {holding.job.attempt},"
        return None, f"the asyncio task {task.get_name()} ({getattr(task.get_coro(), '__qualname__', 'unknown')})"

    def interrupted(self, frame: FrameType | None) -> None:
        """Raise Interrupted where the late handler is; called in the loop's thread, which is at this frame."""
        holding = self._interrupting
        if holding is None or holding.runner is None or holding.runner is not asyncio.current_task(self._loop):
            return  # it has ended meanwhile
        if _is_inside(frame, self._code(holding.job)):
            raise Interrupted

    def _answer(self) -> None:
        self._answered = True

    def _report(self) -> None:
        if not self._reports.count("blocked"):
            return
        _, name = self.culprit()
        frame = sys._current_frames().get(self._thread)
        stack = "" if frame is None else "".join(traceback.format_stack(frame)[-_STACK:])
        _log.warning(
            "The event loop of this worker has been blocked for %.3g s by %s and no other job can run; the worker ends "
            "after %g s (max_block). Use a `def` handler, process=True or asyncio.to_thread for blocking code. It is "
            "here:\n%s",
            self.seconds,
            name.rstrip(","),
            self._limit,
            stack.rstrip(),
        )

    def _interrupt_late_attempt(self) -> None:
        """Break off a handler that has blocked the loop for longer than its timeout: no timer of the loop can."""
        holding, _ = self.culprit()
        if holding is None:
            return
        timeout = self._registry.policy(holding.job).timeout
        if timeout is not None and self.seconds >= timeout.total_seconds():
            self._interrupting = holding
            signal.pthread_kill(self._thread, INTERRUPTING)

    def _code(self, job: Job) -> object:
        handler = self._registry.handler(job.task)
        return None if handler is None else getattr(handler.function, "__code__", None)


def _is_inside(frame: FrameType | None, code: object) -> bool:
    """Whether a frame is that of this code, or was called from it: elsewhere an exception would break the worker."""
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False
