"""Lets schedules follow the store's clock when it jumps.

After a jump forward, what is due fires as if the workers had been away. After a jump backward, schedules whose newest
tick lies in the future are brought back to now (`set_back`). A scheduler that starts cannot know whether the clock was
set back before, so it looks at the schedules once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.model.schedule.clock_set_back import set_back
from perdure.runtime.periodic.clock_jump import ClockJump
from perdure.store import Store
from perdure.store.schedules import Due
from perdure.system.clock import Clock

_PAGE = 500


class ScheduleClock:
    """What one scheduler knows of the store's clock."""

    def __init__(self, *, store: Store, clock: Clock, settles: float) -> None:
        self._store = store
        self._clock = clock
        self._settles = settles
        self._jump = ClockJump()
        self._is_checked = False
        self._new_until = float("-inf")

    @property
    def is_new(self) -> bool:
        """Whether the clock has jumped a short while ago."""
        return self._clock.monotonic() < self._new_until

    async def follow(self, due: Due, *, asked: float) -> bool:
        """Take note of the store's clock, and set schedules back if needed; whether the look at them is out of date."""
        answered = self._clock.monotonic()
        jump = self._jump.look(due.now, asked=asked, answered=answered)
        if jump:
            self._new_until = answered + self._settles
        is_changed = False
        if jump < timedelta(0) or not self._is_checked:
            is_changed = due.next_at is not None and await self._set_back(due.now)
            self._is_checked = True
        return bool(jump) or is_changed

    async def _set_back(self, now: datetime) -> bool:
        """Set back every schedule that needs it; whether one did. Of several schedulers one is the first."""
        is_changed, after = False, None
        while True:
            page = await self._store.schedules(limit=_PAGE, after=after)
            for schedule in page:
                changed = set_back(schedule, now)
                if changed is not schedule:
                    is_changed = True
                    await self._store.put_schedule(changed, schedule.revision)
            if len(page) < _PAGE:
                return is_changed
            after = page[-1].name
