"""Makes waiting jobs ready when they are due: sleeps until the next one is, or until a hint comes."""

from __future__ import annotations

from perdure.clock import Clock
from perdure.store import Store

_BATCH = 1000


class Promoter:
    """Calls promote; any number of workers may do so at once."""

    def __init__(self, *, store: Store, clock: Clock, poll: float) -> None:
        self._store = store
        self._clock = clock
        self._poll = poll

    async def step(self) -> float:
        """Promote what is due; the seconds until the next job is."""
        promoted = await self._store.promote(_BATCH)
        if promoted.count == _BATCH:
            return 0.0
        if promoted.next_run_at is None:
            return self._poll
        until = (promoted.next_run_at - self._clock.now()).total_seconds()
        return min(self._poll, max(until, 0.001))
