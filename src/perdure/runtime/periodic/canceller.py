"""Breaks off running attempts that an operator cancelled: asks the store which, on every hint and every poll."""

from __future__ import annotations

from collections.abc import Callable

from perdure.model.job import WorkerId
from perdure.runtime.in_flight import Held
from perdure.runtime.periodic.loop import NotAsked
from perdure.store import Store


class Canceller:
    """Calls cancelling for one worker."""

    def __init__(self, *, store: Store, held: Held, worker: Callable[[], WorkerId | None], poll: float) -> None:
        self._store = store
        self._held = held
        self._worker = worker
        self._poll = poll
        self._has_failed = False

    async def step(self) -> float:
        """Break off what was cancelled; the seconds until the next look."""
        worker = self._worker()
        # After a failed call it asks again in any case, so that it knows when the store is back.
        if worker is None or not (len(self._held) or self._has_failed):
            return NotAsked(self._poll)
        self._has_failed = True
        cancelled = await self._store.cancelling(worker)
        self._has_failed = False
        for job_id in cancelled:
            holding = self._held.get(job_id)
            if holding is not None:
                holding.break_off("cancel")
        return self._poll
