"""A thread that ends a worker which does not work any more, so that its jobs do not stay `running` for ever.

It looks several times a second whether the event loop runs and answers. It ends the worker when

- the loop has ended while the worker ran on it,
- a handler has blocked the loop for `max_block`,
- a stop takes longer than the grace period and most of `LATE` seconds.

To end the worker is to renew its lease no more, to give its jobs back (see give_back.py), and to write one line to the
log. Where the worker has the process to itself, the process ends too. Otherwise the process belongs to another program
and goes on; `Worker.run()` raises as soon as the loop lets it.

Time in which the thread itself did not run, since the process was stopped or the interpreter was held, does not count
as blocked: the lease is what bounds that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from types import FrameType

import msgspec

from perdure.runtime.handler import Registry
from perdure.runtime.in_flight import Held, Holding
from perdure.runtime.liveness.give_back import Cause, GiveBack, Given
from perdure.runtime.liveness.loop_block import LoopBlock
from perdure.runtime.liveness.own_process import LATE, OwnProcess
from perdure.runtime.plan import Plan
from perdure.system.clock import Clock
from perdure.system.log_limit import LogLimit
from perdure.text.plural import plural

_GIVING_BACK = 2.0
"""How many seconds the store has to take jobs back; the process ends then in any case."""

_LONGEST_TICK = 0.5
"""How many seconds pass at most between two looks at the loop."""

_log = logging.getLogger("perdure")
_warnings = LogLimit()


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
        registry: Registry,
        plan: Plan,
        held: Held,
    ) -> None:
        self._clock = clock
        self._registry = registry
        self._grace = plan.grace
        self._max_block = plan.max_block
        self._most_stopped = min(plan.lease.total_seconds() / 3, LATE)
        self._tick = min(_LONGEST_TICK, plan.lease.total_seconds() / 10, plan.max_block.total_seconds() / 10)
        self._held = held
        self._give_back: GiveBack | None = None
        self._failed: Callable[[Fault], None] | None = None
        self._run_is_over = threading.Event()
        self._ending = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._block: LoopBlock | None = None
        self._thread: threading.Thread | None = None
        self._own_process: OwnProcess | None = None
        self._stop_by: float | None = None
        self._stopped_for = 0.0
        self.fault: Fault | None = None
        """Why the worker was ended, if it was."""

    @property
    def ends_process(self) -> bool:
        """Whether the process ends with the worker."""
        return self._own_process is not None

    @property
    def is_overdue(self) -> bool:
        """Whether the worker has taken longer to stop than it may."""
        return self.fault is not None and self._stop_by is not None and self._clock.monotonic() > self._stop_by

    def own_process(self) -> None:
        """The worker has this process to itself; call it in the main thread, where the loop runs, before the start."""
        self._own_process = OwnProcess(clock=self._clock, grace=self._grace, max_block=self._max_block)

    def start(self, give_back: GiveBack, failed: Callable[[Fault], None]) -> None:
        """Watch over a worker that is about to run on this event loop; raises where the system grants no thread.

        On a fault, `give_back` gives the jobs back; then `failed` is called on the event loop, if that still runs.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        self._give_back, self._failed = give_back, failed
        self._loop = asyncio.get_running_loop()
        self._block = LoopBlock(clock=self._clock, registry=self._registry, held=self._held, max_block=self._max_block)
        self._block.can_interrupt = self.ends_process
        thread = threading.Thread(target=self._watch, name="perdure-watchdog", daemon=True)
        thread.start()
        self._thread = thread

    def may_renew(self) -> bool:
        """[INV-24] The lease is renewed only while the loop runs, is watched, and nothing has ended the worker."""
        is_watched = self._thread is not None and self._thread.is_alive()
        return self.fault is None and is_watched and self._loop is not None and self._loop.is_running()

    def stopping(self, *, at_once: bool) -> None:
        """The worker was told to stop, within the grace period or at once; may be called in any thread."""
        deadline = self._clock.monotonic() + LATE + (0.0 if at_once else self._grace.total_seconds())
        self._stop_by = deadline if self._stop_by is None else min(deadline, self._stop_by)

    def signalled(self) -> None:
        """A signal asks the worker to stop, and the loop may be too busy to hear it; the second means at once."""
        self.stopping(at_once=self._stop_by is not None)

    def interrupted(self, frame: FrameType | None) -> None:
        """SIGURG has come, with which a handler is broken off that blocks the loop past its timeout."""
        if self._block is not None:
            self._block.interrupted(frame)

    def run_ended(self) -> None:
        """`Worker.run()` is over; where the process belongs to the worker, it is to end soon."""
        if self._stop_by is None:
            self.stopping(at_once=True)
        self._run_is_over.set()

    def process_left(self) -> None:
        """The program has control of its process again."""
        if self._own_process is not None:
            self._own_process.leave()

    def loop_ended(self, error: BaseException) -> None:
        """The event loop was left while the worker ran on it: end the worker and the process from here."""
        if not self._run_is_over.is_set():
            what = "was stopped" if isinstance(error, RuntimeError) else f"was ended by {type(error).__name__}"
            self._end(Fault("lost", f"the event loop {what}, by a handler or a task that a handler started"))

    def _watch(self) -> None:
        last = self._clock.monotonic()
        while not self._run_is_over.wait(self._tick):
            now = self._clock.monotonic()
            if self._own_process is not None:
                self._own_process.beat()
            try:
                fault = self._look(now, min(now - last, 2 * self._tick))
            except Exception as error:  # memory is short; the next look may succeed
                _warnings.warn(_log, "The watchdog of this worker cannot look after it: %s", type(error).__name__)
                continue
            last = now
            if fault is not None and not self._run_is_over.is_set():
                self._end(fault)
                return
        if self._own_process is not None:
            self._own_process.see_end(self._stop_by or self._clock.monotonic() + LATE)

    def _look(self, now: float, passed: float) -> Fault | None:
        loop, block = self._loop, self._block
        assert loop is not None, "it watches over a worker on a loop"
        assert block is not None, "made with the loop"
        if self._stop_by is not None and now > self._stop_by - _GIVING_BACK:
            return Fault("stopped", f"it did not stop within its grace period of {self._grace.total_seconds():g} s")
        if not loop.is_running():
            self._stopped_for += passed
            is_over = loop.is_closed() or self._stopped_for > self._most_stopped
            return Fault("lost", "its event loop has ended while it was running") if is_over else None
        self._stopped_for = 0.0
        process = self._own_process
        block.look(passed, is_stopping=process is not None and process.has_signal())
        if block.seconds >= self._max_block.total_seconds():
            culprit, name = block.culprit()
            return Fault("blocked", f"{name} blocked its event loop for {block.seconds:.3g} s", culprit)
        return None

    def _end(self, fault: Fault) -> None:
        """End the worker, once: give its jobs back, say so, and end the process if it is the worker's own."""
        if not self._ending.acquire(blocking=False):
            return
        self.fault = fault
        try:
            helper = threading.Thread(target=self._end_worker, args=(fault,), name="perdure-watchdog-end", daemon=True)
            helper.start()
        except (RuntimeError, MemoryError):
            self._end_worker(fault)  # the system grants no more threads
        else:
            helper.join(_GIVING_BACK)
        process = self._own_process
        if process is None:
            return
        # A worker that was told to stop may just be slow: it has the rest of its time to end in the ordinary way.
        if fault.cause == "stopped" and self._stop_by is not None and process.wait_until_left(self._stop_by):
            process.see_end(self._stop_by)
        process.end()

    def _end_worker(self, fault: Fault) -> None:
        given, problem = Given(), ""
        assert self._give_back is not None, "given at the start"
        assert self._failed is not None, "given at the start"
        try:
            given = self._give_back(fault.cause, fault.culprit, f"the worker ended: {fault.text}")
        except Exception as error:
            problem = f"the store could not be told ({error}); its jobs are recovered when its lease runs out"
        if fault.cause != "stopped" or given.released or given.left or problem:
            jobs = problem or (
                f"{plural(given.released, 'job')} given back, {plural(given.left, 'job')} left to other workers as lost"
            )
            whole = "process" if self.ends_process else "worker"
            _log.error("This worker ends: %s. The %s is ended; %s", fault.text, whole, jobs)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._failed, fault)
