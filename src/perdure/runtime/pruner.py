"""Deletes succeeded and cancelled jobs after the retention time, in small batches; dead ones stay for a person."""

from __future__ import annotations

from datetime import timedelta

from perdure.store import Store

_BATCH = 500
_EVERY = 60.0


class Pruner:
    """Calls prune."""

    def __init__(self, *, store: Store, retention: timedelta) -> None:
        self._store = store
        self._retention = retention

    async def step(self) -> float:
        """Delete one batch; the seconds until the next."""
        pruned = await self._store.prune(self._retention, _BATCH)
        return 0.01 if pruned == _BATCH else _EVERY
