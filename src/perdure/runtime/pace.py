"""Measures how fast a worker finishes jobs, which decides how many it may hold in advance."""

from __future__ import annotations


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
