"""Decides what a worker claims: how many jobs of which queue and lane make up one fetch.

Queues get their weight's part of the free places, lanes keep their shares. A worker that holds nothing can stand by:
the engine then gives it the next jobs as soon as there are any, without a fetch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from perdure.model.job import Job, WorkerId
from perdure.model.queue.fairness import START_CARRY, Fairness, split
from perdure.model.queue.turns import Turns
from perdure.store import Store
from perdure.store.jobs import Fetched, Want
from perdure.store.standby import Standby, StandbyStore


class Claims:
    """Turns a number of free places into one fetch: queues get their weight's part, lanes keep their shares."""

    def __init__(self, *, store: Store, fairness: Callable[[str], Fairness], queues: Mapping[str, int]) -> None:
        self._store = store
        self._caller = store if isinstance(store, StandbyStore) else None
        self._standby: Standby | None = None
        self._fairness = fairness
        self._carries = dict.fromkeys(queues, START_CARRY)
        self._turns = Turns(queues)
        self.was_offered = False
        """Whether the last fetch offered any queue places; a strict one may have left them unused."""

    async def fetch(self, worker: WorkerId, room: int) -> list[Job]:
        """Claim up to `room` jobs; raises LeaseLost and EngineError."""
        wants = self._wants(room)
        return self._taken(wants, await self._store.fetch(worker, wants, room), room)

    @property
    def can_stand_by(self) -> bool:
        """Whether the engine can call this worker."""
        return self._caller is not None and self._caller.can_stand_by

    async def stand_by(self, worker: WorkerId, room: int, patience: float) -> list[Job] | None:
        """Claim up to `room` jobs as soon as there are any; None when nobody knows what became of it."""
        assert self._caller is not None, "only an engine that can call is stood by for"
        wants = self._wants(room)
        self._standby = self._caller.stand_by(worker, wants, room, timedelta(seconds=patience))
        try:
            fetched = await self._standby
        finally:
            self._standby = None
        return None if fetched is None else self._taken(wants, fetched, room)

    def hint_standby(self) -> bool:
        """Tell a standby of a hint; whether it sees to it."""
        return self._standby is not None and self._standby.hint()

    def end_standby(self) -> None:
        """Stand by no longer, if that is what is being done."""
        if self._standby is not None:
            self._standby.end()

    def _taken(self, wants: list[Want], fetched: Fetched, room: int) -> list[Job]:
        self.was_offered = any(fetched.rooms)
        # [INV-9] The carry follows the room that was really offered, so that shares hold under any cut.
        for want, offered in zip(wants, fetched.rooms, strict=True):
            if offered > 0:
                self._carries[want.queue] = split(offered, want.retry_share, self._carries[want.queue]).carry
        if len(self._carries) > 1:
            self._settle(wants, fetched, room)
        return fetched.jobs

    def _wants(self, room: int) -> list[Want]:
        """What each queue is due by its weight; then once more all of them, for what others could not use."""
        if len(self._carries) == 1:
            (queue,) = self._carries
            return [self._want(queue, room, self._carries[queue])]
        allotted = self._turns.allot(room)
        wants = [self._want(queue, count, self._carries[queue]) for queue, count in allotted.items()]
        carried = {want.queue: split(want.count, want.retry_share, want.carry).carry for want in wants}
        for queue in self._turns.order():
            wants.append(self._want(queue, room, carried.get(queue, self._carries[queue])))
        return wants

    def _want(self, queue: str, count: int, carry: int) -> Want:
        fairness = self._fairness(queue)
        return Want(
            queue=queue,
            count=count,
            retry_share=fairness.share,
            carry=carry,
            is_strict=fairness.is_strict,
            max_retries_running=fairness.max_retries_running,
            concurrency=fairness.concurrency,
        )

    def _settle(self, wants: Sequence[Want], fetched: Fetched, room: int) -> None:
        """Tell the turns what came of them: who started how many, and who could not fill its part."""
        counts = Counter(job.queue for job in fetched.jobs)
        if len(fetched.jobs) < room:
            # Even the second round left places free: every queue has given what it could.
            short = set(self._carries)
        else:
            due = {want.queue: want.count for want in wants[: len(wants) - len(self._carries)]}
            short = {queue for queue, count in due.items() if counts[queue] < count}
        self._turns.started(counts, short)
