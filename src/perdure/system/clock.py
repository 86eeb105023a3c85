"""The only place that reads the clock; everything else is handed a Clock.

`SystemClock` is real time. `VirtualClock` moves only when it is told to, so that an hour of retries takes no time.
"""

from __future__ import annotations

import asyncio
import functools
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOOK_EVERY = 1.0
"""The most seconds that a wait for a wall-clock moment lasts before the clock is looked at again: it may jump."""


class Clock(Protocol):
    """What the runtime needs of time: the wall clock, a clock that never jumps, and a way to wait."""

    def now(self) -> datetime:
        """The wall-clock time, aware, in UTC."""
        ...

    def microseconds(self) -> int:
        """The same as the engines keep it: whole microseconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this clock."""
        ...


class SystemClock:
    """Real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def microseconds(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """Time under a test's control; sleeping on it does not wait, it only lets others run."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime(2030, 1, 1, tzinfo=UTC)
        self._now = self._start

    def now(self) -> datetime:
        return self._now

    def microseconds(self) -> int:
        return to_microseconds(self.now())

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def advance(self, by: timedelta) -> None:
        if by < timedelta(0):
            raise ValueError(f"the clock cannot go back, and {by} is negative")
        self._now += by

    def advance_to(self, moment: datetime) -> None:
        self._now = max(self._now, moment)


def to_microseconds(moment: datetime) -> int:
    """A moment as the engines keep it: whole microseconds since 1970, UTC."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


@functools.lru_cache(4096)  # the jobs of a batch were often made, and are always claimed, at the same moment
def from_microseconds(value: int) -> datetime:
    """The moment that the engines keep as so many microseconds."""
    return EPOCH + timedelta(microseconds=value)
