"""The waits of the fetcher: for room, and for work, which a hint, the next poll or a standby announces.

Other parts of the worker call `wake`, `idle`, `changed`, `freed` and `stop`; all of that is on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from perdure.runtime.claims import Claims
from perdure.system.wake_signal import WakeSignal


class FetchWait:
    """What the fetcher waits for between two fetches."""

    def __init__(self, *, claims: Claims, random: Random, poll: float, is_idle: Callable[[], bool]) -> None:
        self._claims = claims
        self._random = random
        self._poll = poll
        self._is_idle = is_idle
        self._is_drained = False
        """Whether the last fetch found fewer jobs than there was room for, and no poll is due."""
        self._is_hinted = False
        self._work = WakeSignal()
        self._room = WakeSignal()
        self.is_stopping = False
        self.wants_room = False
        """Whether the fetcher waits for room; otherwise nobody needs to call `freed`."""

    def wake(self) -> None:
        """Jobs may be ready."""
        if self._claims.hint_standby():
            return
        self._is_hinted = True
        self._work.notify()

    def idle(self) -> None:
        """The worker holds no job any more, so it may stand by."""
        if self._claims.can_stand_by:
            self._work.notify()

    def changed(self) -> None:
        """The wanted queues, their limits or the worker's id changed: end the current wait and fetch anew."""
        self.wake()
        self._claims.end_standby()

    def freed(self) -> None:
        """There may be room again."""
        self._room.notify()

    def stop(self) -> None:
        """End the current wait; no fetch follows."""
        self.is_stopping = True
        self._work.notify()
        self._room.notify()
        self._claims.end_standby()

    def begin_fetch(self) -> bool:
        """Begin a fetch; whether it is to be a standby."""
        # Jobs that a hint announces may have become ready before a standby began, and then it is not called for them.
        stands_by = self._is_drained and not self._is_hinted and self._can_stand_by
        self._is_hinted = False
        self._work.clear()
        return stands_by

    def fetch_failed(self) -> None:
        """The next fetch must not be a standby, which may wait long before it asks the store anything."""
        self._is_drained = False

    async def for_room(self) -> None:
        """Wait until there may be room for jobs."""
        self.wants_room = True
        await self._room.wait(self.until_poll())
        self.wants_room = False

    async def for_work(self, *, is_drained: bool) -> None:
        """Wait until there may be work: after a fetch that drained the queues, until a hint or the next poll."""
        self._is_drained = is_drained
        if is_drained and not self._can_stand_by:
            self._is_drained = await self._work.wait(self.until_poll())

    def until_poll(self) -> float:
        """The seconds until the next poll, jittered so that workers do not poll in step."""
        return self._poll * self._random.uniform(0.75, 1.0)

    @property
    def _can_stand_by(self) -> bool:
        return self._claims.can_stand_by and self._is_idle()
