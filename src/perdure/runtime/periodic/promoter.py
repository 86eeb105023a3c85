"""Makes waiting jobs ready when they are due: sleeps until the next one is, or until a hint comes.

Every due job passes through `ready` before it is claimed, however many are due at once: only there do priorities, lanes
and queue weights order it among the others.
"""

from __future__ import annotations

from perdure.store import Store
from perdure.system.clock import LOOK_EVERY

_BATCH = 1000
"""The most jobs that one call promotes; it bounds how long the call keeps other writers waiting."""


class Promoter:
    """Calls promote; any number of workers may do so at once."""

    def __init__(self, *, store: Store, poll: float) -> None:
        self._store = store
        self._poll = poll

    async def step(self) -> float:
        """Promote one batch of due jobs; returns the seconds until the next job is due, or until the next look."""
        promoted = await self._store.promote(_BATCH)
        if promoted.count == _BATCH:
            return 0.0
        if promoted.next_run_at is None:
            return self._poll
        # By the store's clock on both sides: this machine may have another one.
        until = (promoted.next_run_at - promoted.now).total_seconds()
        return min(self._poll, LOOK_EVERY, max(until, 0.001))
