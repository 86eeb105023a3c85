"""Breaks off running attempts that an operator cancelled: asks the store which, on every hint and every poll."""

from __future__ import annotations

from collections.abc import Callable

from perdure.model.job import WorkerId
from perdure.runtime.held import Held
from perdure.store import Store


class Canceller:
    """Calls cancelling for one worker."""

    def __init__(self, *, store: Store, held: Held, worker: Callable[[], WorkerId | None], poll: float) -> None:
        self._store = store
        self._held = held
        self._worker = worker
        self._poll = poll

    async def step(self) -> float:
        """Break off what was cancelled; the seconds until the next look."""
        worker = self._worker()
        if worker is not None and len(self._held):
            for job_id in await self._store.cancelling(worker):
                holding = self._held.get(job_id)
                if holding is not None:
                    holding.break_off("cancel")
        return self._poll
