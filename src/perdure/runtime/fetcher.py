"""Claims jobs for the slots: as many as can be run soon, from each queue and lane its share.

It waits for room, fetches a batch into the buffer, and when there was less than it asked for, waits for a hint or the
next poll. How much it holds in advance follows the measured pace: about 200 ms of work, so that fast jobs stream and
slow ones are never hoarded. It stops when told to, after the fetch in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from perdure.clock import Clock
from perdure.errors import EngineError, LeaseLost
from perdure.model.fairness import START_CARRY
from perdure.model.job import Job, WorkerId
from perdure.runtime.handler import Registry
from perdure.runtime.membership import Membership
from perdure.runtime.trouble import Trouble
from perdure.store import Store
from perdure.store.jobs import Want

_LARGEST_BATCH = 1000


class Claims:
    """Turns a number of free places into one fetch: queues take turns, lanes keep their shares."""

    def __init__(self, *, store: Store, registry: Registry, queues: Sequence[str]) -> None:
        self._store = store
        self._registry = registry
        self._queues = list(queues)
        self._carries = dict.fromkeys(queues, START_CARRY)
        self._turn = 0

    async def fetch(self, worker: WorkerId, room: int) -> list[Job]:
        """Claim up to `room` jobs; raises LeaseLost and EngineError."""
        # Each fetch begins with the next queue, so that no deep queue can keep the others out.
        turn = self._turn % len(self._queues)
        order = self._queues[turn:] + self._queues[:turn]
        self._turn += 1
        return await self._store.fetch(worker, [self._want(queue, room) for queue in order], room)

    def _want(self, queue: str, room: int) -> Want:
        fairness = self._registry.fairness(queue)
        fresh, retry, self._carries[queue] = fairness.split(room, self._carries[queue])
        return Want(
            queue=queue,
            fresh=fresh,
            retry=retry,
            is_strict=fairness.is_strict,
            max_retries_running=fairness.max_retries_running,
        )


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
        trouble: Trouble,
        poll: float,
        room: Callable[[], int],
        low: Callable[[], bool],
        deliver: Callable[[list[Job]], None],
        membership: Membership,
    ) -> None:
        self._claims = claims
        self._clock = clock
        self._random = random
        self._trouble = trouble
        self._poll = poll
        self._room = room
        self._low = low
        self._deliver = deliver
        self._membership = membership
        self._wake = asyncio.Event()
        self._freed = asyncio.Event()
        self._is_stopping = False

    def wake(self) -> None:
        """Something may be ready."""
        self._wake.set()

    def freed(self) -> None:
        """There may be room again."""
        self._freed.set()

    def stop(self) -> None:
        """Fetch no more."""
        self._is_stopping = True
        self._wake.set()
        self._freed.set()

    async def run(self) -> None:
        while not self._is_stopping:
            room = self._room()
            worker = self._membership.id
            if room <= 0 or worker is None or not self._membership.is_trusted() or not self._low():
                await self._pause_until(self._freed)
                continue
            self._wake.clear()
            room = min(room, _LARGEST_BATCH)
            try:
                jobs = await self._claims.fetch(worker, room)
            except LeaseLost:
                self._membership.lose()
                await self._pause_until(self._freed)
                continue
            except EngineError as error:
                await self._clock.sleep(self._trouble.failed(error))
                continue
            self._trouble.succeeded()
            if jobs:
                self._deliver(jobs)
            if len(jobs) < room:
                await self._pause_until(self._wake)

    async def _pause_until(self, event: asyncio.Event) -> None:
        """Wait for the event, or for the next poll, jittered so that workers do not march in step."""
        if not self._is_stopping:
            timeout = self._poll * self._random.uniform(0.75, 1.0)
            try:
                async with asyncio.timeout(timeout):
                    await event.wait()
            except TimeoutError:
                pass
        event.clear()
