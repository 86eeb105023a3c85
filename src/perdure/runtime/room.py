"""How many more jobs a worker may claim: its free slots and what its measured pace uses up soon."""

from __future__ import annotations

from perdure.runtime.buffer import Buffer
from perdure.runtime.executor import Executor
from perdure.runtime.in_flight import Held
from perdure.runtime.pace import Pace
from perdure.runtime.plan import Plan
from perdure.system.clock import Clock

_MOST_UNCOMMITTED = 4000
"""How many ended attempts may wait for their commit before no more jobs are claimed."""


class Room:
    """The room of one worker."""

    def __init__(self, *, plan: Plan, clock: Clock, buffer: Buffer, held: Held, executor: Executor) -> None:
        self._clock = clock
        self._slots = plan.concurrency
        self._pace = Pace(horizon=plan.prefetch.total_seconds(), most=plan.max_prefetch, slots=plan.concurrency)
        self._buffer = buffer
        self._held = held
        self._executor = executor

    def count(self) -> int:
        """How many more jobs may be claimed: slots and measured advance, less what is held and not yet run."""
        self._pace.measure(self._clock.monotonic(), self._executor.finished)
        pending = len(self._buffer) + self._executor.busy
        if len(self._held) - pending > _MOST_UNCOMMITTED:
            return 0
        return self._slots + self._pace.advance - pending

    def is_low(self) -> bool:
        """Whether so few jobs wait for a slot that the next ones should be claimed."""
        # Jobs that free slots are about to take do not wait: with more slots than a batch is large, the next is due.
        waiting = len(self._buffer) - (self._slots - self._executor.busy)
        return waiting <= self._pace.advance // 2
