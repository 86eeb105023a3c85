"""Notices when the store's clock jumps: the wall clock is compared with this process's monotonic clock.

The store tells its time at an unknown moment between a call and its answer. So each look gives a range for the
difference between the two clocks, and only ranges that lie apart by more than a tolerance show a jump.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.system.clock import EPOCH

TOLERANCE = 1.0
"""The largest difference between two looks, in seconds, that is still taken for an adjustment of a running clock."""


class ClockJump:
    """What one part of a worker has seen of the store's clock."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        """The least and the greatest possible difference between the two clocks at the last look, in seconds."""

    def look(self, now: datetime, *, asked: float, answered: float) -> timedelta:
        """How far the clock has jumped since the last look; zero if it has not. `now` is what the store answered.

        `asked` and `answered` are moments of the monotonic clock, before the call and after it.
        """
        wall = (now - EPOCH).total_seconds()
        before, self._last = self._last, (wall - answered, wall - asked)
        if before is None:
            return timedelta(0)
        forward, backward = self._last[0] - before[1], before[0] - self._last[1]
        if max(forward, backward) <= TOLERANCE:
            return timedelta(0)
        return timedelta(seconds=forward if forward > 0 else -backward)
