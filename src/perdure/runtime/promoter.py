"""Makes waiting jobs ready when they are due: sleeps until the next one is, or until a hint comes."""

from __future__ import annotations

from perdure.clock import Clock
from perdure.runtime.flood import Flood
from perdure.store import Store

_BATCH = 1000
_FEW = 100
"""How many are promoted before a fetcher that could take them is asked to."""


class Promoter:
    """Calls promote; any number of workers may do so at once."""

    def __init__(self, *, store: Store, clock: Clock, poll: float, flood: Flood | None = None) -> None:
        self._store = store
        self._clock = clock
        self._poll = poll
        self._flood = flood

    async def step(self) -> float:
        """Promote what is due, or leave it to the fetcher; the seconds until the next job is due."""
        flood = self._flood
        if flood is not None and (left := flood.seconds_left()) > 0:
            return left
        beginning = flood if flood is not None and flood.may_begin else None
        limit = _FEW if beginning else _BATCH
        promoted = await self._store.promote(limit)
        if promoted.count == limit:
            if beginning:
                beginning.begin()
            return 0.0
        if flood is not None:
            flood.subside()
        if promoted.next_run_at is None:
            return self._poll
        until = (promoted.next_run_at - self._clock.now()).total_seconds()
        return min(self._poll, max(until, 0.001))
