"""A thread that ends a worker which does not work any more, so that its jobs do not stay `running` for ever.

It looks several times a second whether the event loop runs and answers. It ends the worker when

- the loop has ended while the worker ran on it,
- a handler has blocked the loop for `max_block`,
- a stop takes longer than the grace period and `LATE` seconds.

To end the worker is to renew its lease no more, to give its jobs back (see give_back.py), and to write one line to the
log. Where the worker has the process to itself (`ends_process`), the process ends too. Otherwise the process belongs to
another program and goes on; `Worker.run()` raises as soon as the loop lets it.

Time in which the thread itself did not run, since the process was stopped or the interpreter was held, does not count
as blocked: the lease is what bounds that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Literal

import msgspec

from perdure.clock import Clock
from perdure.log_limit import LogLimit
from perdure.runtime.give_back import Cause, GiveBack, Given
from perdure.runtime.held import Held, Holding
from perdure.wording import plural

LATE = 5.0
"""Within how many seconds after its grace period a worker that was told to stop has ended, whatever handlers do."""

EXIT_CODE = 1
"""The exit code of a process that the watchdog ends."""

_GIVING_BACK = 2.0
"""How many seconds the store has to take jobs back; the process ends then in any case."""

_REPORTED = 5.0
"""After how many seconds a blocked loop is reported, unless half of `max_block` is less."""

_STACK = 12
"""How many of the innermost calls of a blocked loop are reported."""

_LONGEST_TICK = 0.5

_log = logging.getLogger("perdure")


class Fault(msgspec.Struct, frozen=True):
    """Why a worker ends."""

    cause: Cause
    text: str
    culprit: Holding | None = None


class Watchdog:
    """Watches over one worker."""

    def __init__(
        self,
        *,
        clock: Clock,
        lease: timedelta,
        grace: timedelta,
        max_block: timedelta,
        held: Held,
        give_back: GiveBack,
        failed: Callable[[Fault], None],
    ) -> None:
        """`failed` is called on the event loop, if that still runs, once the jobs have been given back."""
        self._clock = clock
        self._grace = grace.total_seconds()
        self._limit = max_block.total_seconds()
        self._most_stopped = min(lease.total_seconds() / 3, LATE)
        self._tick = min(_LONGEST_TICK, lease.total_seconds() / 10, self._limit / 10)
        self._held = held
        self._give_back = give_back
        self._failed = failed
        self._reports = LogLimit(every=60.0, clock=clock)
        self._phase: Literal["working", "leaving", "left"] = "working"
        self._changed = threading.Event()
        self._ending = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._stop_by: float | None = None
        self._exit_by: float | None = None
        self._signalled_at: float | None = None
        self._stopped_for = 0.0
        self._blocked_for = 0.0
        self._is_reported = False
        self._answered = True
        self.fault: Fault | None = None
        """Why the worker was ended, if it was."""
        self.ends_process = False
        """Whether the process ends with the worker."""

    @property
    def is_overdue(self) -> bool:
        """Whether the worker has taken longer to stop than it may."""
        return self.fault is not None and self._stop_by is not None and self._clock.monotonic() > self._stop_by

    def start(self) -> None:
        """Watch over a worker that is about to run on this event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        threading.Thread(target=self._watch, name="perdure-watchdog", daemon=True).start()

    def may_renew(self) -> bool:
        """[INV-24] The lease is renewed only while the loop runs and nothing has ended the worker."""
        return self.fault is None and self._loop is not None and self._loop.is_running()

    def stopping(self, *, at_once: bool) -> None:
        """The worker was told to stop, within the grace period or at once; may be called in any thread."""
        by = self._clock.monotonic() + LATE + (0.0 if at_once else self._grace)
        self._stop_by = by if self._stop_by is None else min(by, self._stop_by)

    def signalled(self) -> None:
        """A signal asks the worker to stop, and the loop may be too busy to hear it; a later one means at once."""
        now = self._clock.monotonic()
        if self._signalled_at is None:
            self._signalled_at = now
            self.stopping(at_once=False)
        elif now - self._signalled_at > 1.0:
            self.stopping(at_once=True)

    def run_ended(self) -> None:
        """`Worker.run()` is over; where the process belongs to the worker, it is to end soon."""
        if self._phase == "working":
            self._phase = "leaving" if self.ends_process else "left"
            if self._stop_by is None:
                self.stopping(at_once=True)
        self._changed.set()

    def process_left(self) -> None:
        """The program has control of its process again; once its main thread has ended, the process must end."""
        self._phase = "left"
        self._exit_by, self._stop_by = self._stop_by, None
        self._changed.set()

    def loop_ended(self, why: BaseException) -> None:
        """The event loop was left while the worker ran on it: end the worker and the process from here."""
        if self._phase == "working":
            what = "was stopped" if isinstance(why, RuntimeError) else f"was ended by {type(why).__name__}"
            self._end(Fault("lost", f"the event loop {what}, by a handler or a task that a handler started"))

    def _watch(self) -> None:
        last = self._clock.monotonic()
        while self._phase == "working":
            self._changed.wait(self._tick)
            now = self._clock.monotonic()
            fault = self._look(now, min(now - last, 2 * self._tick))
            last = now
            if fault is not None and self._phase == "working":
                self._end(fault)
                return
        if self.ends_process:
            self._see_process_end()

    def _look(self, now: float, passed: float) -> Fault | None:
        loop = self._loop
        assert loop is not None, "it watches over a worker on a loop"
        if self._stop_by is not None and now > self._stop_by - _GIVING_BACK:
            return Fault("stopped", f"it did not stop within its grace period of {self._grace:g} s")
        if not loop.is_running():
            self._stopped_for += passed
            is_over = loop.is_closed() or self._stopped_for > self._most_stopped
            return Fault("lost", "its event loop has ended while it was running") if is_over else None
        self._stopped_for = 0.0
        if self._answered:
            self._answered, self._blocked_for, self._is_reported = False, 0.0, False
            with contextlib.suppress(RuntimeError):  # closed meanwhile, which the next look finds
                loop.call_soon_threadsafe(self._answer)
            return None
        self._blocked_for += passed
        if self._blocked_for >= self._limit:
            culprit, who = self._blocking(loop)
            return Fault("blocked", f"{who} blocked its event loop for {self._blocked_for:.3g} s", culprit)
        if self._blocked_for >= min(_REPORTED, self._limit / 2) and not self._is_reported:
            self._is_reported = True
            self._report(loop)
        return None

    def _answer(self) -> None:
        self._answered = True

    def _blocking(self, loop: asyncio.AbstractEventLoop) -> tuple[Holding | None, str]:
        """What runs on the loop: the held job, if it is one, and its name."""
        task = asyncio.current_task(loop)
        if task is None:
            return None, "a callback"
        for holding in self._held.all():
            if holding.runner is task:
                return holding, f"task {holding.job.task!r}, job {holding.job.id}, attempt {holding.job.attempt},"
        return None, f"the asyncio task {task.get_name()} ({getattr(task.get_coro(), '__qualname__', 'unknown')})"

    def _report(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._reports.count("blocked"):
            return
        _, who = self._blocking(loop)
        frame = sys._current_frames().get(self._thread)
        stack = "" if frame is None else "".join(traceback.format_stack(frame)[-_STACK:])
        _log.warning(
            "The event loop of this worker has been blocked for %.3g s by %s and no other job can run; the worker ends "
            "after %g s (max_block). Use a `def` handler, process=True or asyncio.to_thread for blocking code. It is "
            "here:\n%s",
            self._blocked_for,
            who.rstrip(","),
            self._limit,
            stack.rstrip(),
        )

    def _end(self, fault: Fault) -> None:
        """End the worker, once: give its jobs back, say so, and end the process if it is the worker's own."""
        if not self._ending.acquire(blocking=False):
            return
        self.fault = fault
        began = self._clock.monotonic()
        helper = threading.Thread(target=self._end_worker, args=(fault,), name="perdure-watchdog-end", daemon=True)
        try:
            helper.start()
        except RuntimeError:
            self._end_worker(fault)  # the system grants no more threads
        else:
            helper.join(_GIVING_BACK)
        if not self.ends_process:
            return
        if fault.cause == "stopped":
            # The worker may just be slow: it has the rest of its time to end in the ordinary way.
            self._wait_for_end((self._stop_by or began) - self._clock.monotonic() - 0.2)
        _exit()

    def _wait_for_end(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        while self._clock.monotonic() < until:
            self._changed.wait(0.05)
            if self._phase == "left":
                self._see_process_end()
                return
            self._changed.clear()

    def _end_worker(self, fault: Fault) -> None:
        given, trouble = Given(), ""
        try:
            given = self._give_back(fault.cause, fault.culprit, f"the worker ended: {fault.text}")
        except Exception as error:
            trouble = f"the store could not be told ({error}); its jobs are recovered when its lease runs out"
        if fault.cause != "stopped" or given.released or given.left or trouble:
            jobs = trouble or (
                f"{plural(given.released, 'job')} given back, {plural(given.left, 'job')} left to other workers as lost"
            )
            whole = "process" if self.ends_process else "worker"
            _log.error("This worker ends: %s. The %s is ended; %s", fault.text, whole, jobs)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._failed, fault)

    def _see_process_end(self) -> None:
        """End the process if that takes too long by itself: leftovers of handlers may keep it alive for ever."""
        while self._phase == "leaving":
            left = (self._stop_by or 0.0) - self._clock.monotonic() - 0.2
            if left <= 0:
                _log.error("The worker has stopped, but its process does not end: a task is left. It is ended.")
                _exit()
            self._changed.clear()
            if self._phase == "leaving":
                self._changed.wait(left)
        threading.main_thread().join()
        # Only now do exit functions run, and threads that are no daemons get waited for.
        left = 0.0 if self._exit_by is None else self._exit_by - self._clock.monotonic() - 0.2
        threading.Event().wait(left if left > 0 else LATE - 1.0)
        _log.error("The program is over, but its process does not end: a thread or exit function is left. It is ended.")
        _exit()


def _exit() -> None:
    """End the process at once, whatever else is going on in it."""
    flusher = threading.Thread(target=_flush, daemon=True)
    with contextlib.suppress(RuntimeError):
        flusher.start()
        flusher.join(0.2)
    os._exit(EXIT_CODE)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
