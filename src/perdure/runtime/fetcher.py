"""Fetches jobs into the buffer, as many as the slots can run soon.

It waits for room, claims a batch, and after a fetch that found fewer jobs than it asked for waits for work (see
`fetch_wait.py`). How much it holds in advance follows the measured pace: about 200 ms of work, so that fast jobs stream
and slow jobs are not hoarded. It stops when told to, after the fetch in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from perdure.errors import LeaseLost
from perdure.model.job import Job, WorkerId
from perdure.runtime.backoff import Backoff
from perdure.runtime.claims import Claims
from perdure.runtime.fetch_wait import FetchWait
from perdure.runtime.membership import Membership
from perdure.runtime.room import Room
from perdure.system.clock import Clock

_LARGEST_BATCH = 1000
"""The most jobs of one fetch."""


class Fetcher:
    """Keeps the buffer filled."""

    def __init__(
        self,
        *,
        claims: Claims,
        wait: FetchWait,
        room: Room,
        membership: Membership,
        clock: Clock,
        backoff: Backoff,
        deliver: Callable[[list[Job]], None],
    ) -> None:
        self._claims = claims
        self._wait = wait
        self._room = room
        self._membership = membership
        self._clock = clock
        self._backoff = backoff
        self._deliver = deliver

    async def run(self) -> None:
        """Fetch until stopped."""
        while not self._wait.is_stopping:
            room, worker = self._room.count(), self._membership.id
            if room > 0 and worker is not None and self._membership.is_trusted() and self._room.is_low():
                await self._fetch(worker, min(room, _LARGEST_BATCH))
            else:
                await self._wait.for_room()

    async def _fetch(self, worker: WorkerId, room: int) -> None:
        """Claim up to `room` jobs, deliver them, and wait as long as there is nothing more to claim."""
        stands_by = self._wait.begin_fetch()
        try:
            if stands_by:
                jobs = await self._claims.stand_by(worker, room, self._wait.until_poll())
            else:
                jobs = await self._claims.fetch(worker, room)
        except LeaseLost:
            if worker == self._membership.id:
                self._membership.lose()
            await self._wait.for_room()
            return
        except Exception as error:
            self._wait.fetch_failed()
            await self._clock.sleep(self._backoff.failed(error))
            return
        if jobs is None:
            self._wait.wake()  # the standby broke off; a plain fetch tells what is ready
            return
        self._backoff.succeeded()
        is_drained = len(jobs) < room
        if jobs:
            self._deliver(jobs)
            if stands_by or is_drained:
                # Slots that wait for these jobs begin before anything else is done.
                await asyncio.sleep(0)
        await self._wait.for_work(is_drained=is_drained)
