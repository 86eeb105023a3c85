"""Claims jobs for the slots: as many as can be run soon, from each queue and lane its share.

It waits for room, fetches a batch into the buffer, and when there was less than it asked for, waits for a hint or the
next poll; a worker that holds nothing stands by where the engine can call it. How much it holds in advance follows the
measured pace: about 200 ms of work, so that fast jobs stream and slow ones are never hoarded. It stops when told to,
after the fetch in flight.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random

from perdure.errors import LeaseLost
from perdure.model.job import Job, WorkerId
from perdure.model.queue.fairness import START_CARRY, Fairness, split
from perdure.model.queue.turns import Turns
from perdure.runtime.backoff import Backoff
from perdure.runtime.membership import Membership
from perdure.store import Store
from perdure.store.jobs import Fetched, Want
from perdure.store.standby import Standby, StandbyStore
from perdure.system.clock import Clock
from perdure.system.wake_signal import WakeSignal

_LARGEST_BATCH = 1000


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


class Pace:
    """How many jobs a worker finishes per second, measured, and how many it may therefore hold in advance."""

    def __init__(self, *, horizon: float, most: int, slots: int = 1) -> None:
        self._horizon = horizon
        self._most = most
        self._slots = slots
        self._rate = 0.0
        self._began = 0.0
        self._finished = 0

    @property
    def advance(self) -> int:
        """How many jobs make up the horizon at the measured pace."""
        return min(self._most, int(self._rate * self._horizon))

    def measure(self, now: float, finished: int) -> None:
        """Take a reading: so many attempts were finished in all, at this moment."""
        elapsed = now - self._began
        if elapsed <= 0:
            return
        # Slots that happen to end together are no pace: a reading takes its time, or a turnover of every slot.
        if elapsed < self._horizon and finished - self._finished <= 2 * self._slots:
            return
        reading = (finished - self._finished) / elapsed
        # Follow a rising pace fast but not at once, and forget a past one within a few readings.
        if reading >= self._rate:
            self._rate = min(reading, 4 * self._rate + 200)
        else:
            weight = min(1.0, elapsed / self._horizon)
            self._rate += weight * (reading - self._rate)
        self._began, self._finished = now, finished


class Fetcher:
    """Keeps the buffer filled."""

    def __init__(
        self,
        *,
        claims: Claims,
        clock: Clock,
        random: Random,
        backoff: Backoff,
        poll: float,
        room: Callable[[], int],
        low: Callable[[], bool],
        deliver: Callable[[list[Job]], None],
        membership: Membership,
        is_idle: Callable[[], bool] = lambda: False,
    ) -> None:
        self._claims = claims
        self._clock = clock
        self._random = random
        self._backoff = backoff
        self._poll = poll
        self._room = room
        self._low = low
        self._deliver = deliver
        self._membership = membership
        self._is_idle = is_idle
        self._is_hinted = False
        self._wake = WakeSignal()
        self._freed = WakeSignal()
        self._is_stopping = False
        self.wants_room = False
        """Whether it waits for room; otherwise nobody need tell it of some."""

    def wake(self) -> None:
        """Something may be ready."""
        if self._claims.hint_standby():
            return
        self._is_hinted = True
        self._wake.notify()

    def idle(self) -> None:
        """The worker holds nothing any more."""
        if self._claims.can_stand_by:
            self._wake.notify()

    def changed(self) -> None:
        """What is to be asked for, or by whom, is not what it was."""
        self.wake()
        self._claims.end_standby()

    def freed(self) -> None:
        """There may be room again."""
        self._freed.notify()

    def stop(self) -> None:
        """Fetch no more."""
        self._is_stopping = True
        self._wake.notify()
        self._freed.notify()
        self._claims.end_standby()

    async def run(self) -> None:
        is_drained = False
        while not self._is_stopping:
            room = self._room()
            worker = self._membership.id
            if room <= 0 or worker is None or not self._membership.is_trusted() or not self._low():
                await self._until_freed()
                continue
            # What a hint tells of may have been ready before a standby began: then nobody is called for it.
            stands_by = is_drained and not self._is_hinted and self._can_stand_by()
            self._is_hinted = False
            self._wake.clear()
            room = min(room, _LARGEST_BATCH)
            jobs: list[Job] | None
            try:
                jobs = await (self._stand_by(worker, room) if stands_by else self._claims.fetch(worker, room))
            except LeaseLost:
                if worker == self._membership.id:
                    self._membership.lose()
                await self._until_freed()
                continue
            except Exception as error:
                # The next try is a plain fetch: a standby may wait long before it asks the store anything.
                is_drained = False
                await self._clock.sleep(self._backoff.failed(error))
                continue
            if jobs is None:
                continue  # nobody knows what became of the standby; a fetch will tell
            self._backoff.succeeded()
            is_drained = len(jobs) < room
            if jobs:
                self._deliver(jobs)
                if stands_by or is_drained:
                    # Slots that waited for these jobs are to begin before anything else is done.
                    await asyncio.sleep(0)
            if is_drained and not self._can_stand_by():
                is_drained = await self._wake.wait(self._pause())

    def _can_stand_by(self) -> bool:
        return self._claims.can_stand_by and self._is_idle()

    async def _stand_by(self, worker: WorkerId, room: int) -> list[Job] | None:
        jobs = await self._claims.stand_by(worker, room, self._pause())
        if jobs is None:
            self.wake()
        return jobs

    async def _until_freed(self) -> None:
        self.wants_room = True
        await self._freed.wait(self._pause())
        self.wants_room = False

    def _pause(self) -> float:
        """How long until the next poll, jittered so that workers do not march in step."""
        return self._poll * self._random.uniform(0.75, 1.0)
