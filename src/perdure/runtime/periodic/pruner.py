"""Deletes succeeded and cancelled jobs after the retention time, in small batches; dead ones stay for a person.

When the store's clock jumps forward, every job of before looks older than it is. Such a jump is added to the retention
time until the jobs of before are past it in any case, so that no history is deleted early.
"""

from __future__ import annotations

from datetime import timedelta

from perdure.runtime.periodic.clock_jump import ClockJump
from perdure.store import Store
from perdure.system.clock import Clock

_BATCH = 500
_EVERY = 60.0


class Pruner:
    """Calls prune."""

    def __init__(self, *, store: Store, clock: Clock, retention: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._retention = retention
        self._jump = ClockJump()
        self._ahead = timedelta(0)
        """How far the store's clock has jumped forward, all in all, while jobs of before are kept."""
        self._ahead_until = float("-inf")

    async def step(self) -> float:
        """Delete one batch; the seconds until the next."""
        await self._look()
        pruned = await self._store.prune(self._retention + self._ahead, _BATCH)
        return 0.01 if pruned == _BATCH else _EVERY

    async def _look(self) -> None:
        asked = self._clock.monotonic()
        now = await self._store.now()
        answered = self._clock.monotonic()
        if jump := self._jump.look(now, asked=asked, answered=answered):
            self._ahead = max(self._ahead + jump, timedelta(0))
            self._ahead_until = answered + self._retention.total_seconds()
        elif answered >= self._ahead_until:
            self._ahead = timedelta(0)
