"""Decides where a statement begins to read an index that is ordered by time.

Each statement takes its jobs from the beginning of the index. While an old snapshot is open, the entries of all jobs
taken since gather there. When reading them is measured to be slow, the statement begins where its last use ended, and
reads from the beginning again only for a bounded share of the time. That finds jobs that came late to an earlier place.
"""

from __future__ import annotations

from perdure.system.clock import Clock, SystemClock

BEGINNING = -(2**63)
SLOW = 5_000
SLOW_PER_JOB = 50
"""A statement is slow if it takes more microseconds than this, plus this for each job that it takes."""
PAUSE = 20.0
"""After a slow read from the beginning, statements do without for this many times as long: 5 % of the time."""


class ScanStart:
    """Where one kind of statement begins."""

    def __init__(self, *, is_enabled: bool = True, clock: Clock | None = None) -> None:
        self._is_enabled = is_enabled
        self._clock = clock or SystemClock()
        self._reached = BEGINNING
        self._rests_until = float("-inf")

    def next(self) -> int:
        """The time in microseconds from which on the next statement reads the index."""
        return BEGINNING if self._clock.monotonic() >= self._rests_until else self._reached

    def observe(self, began: int, reached: int | None, jobs: int, took: int) -> None:
        """Take in from where a statement read, how far it came (None: unknown), and how many microseconds it took."""
        if began == BEGINNING and self._is_enabled:
            is_slow = took > SLOW + SLOW_PER_JOB * jobs
            self._rests_until = self._clock.monotonic() + PAUSE * took / 1e6 if is_slow else float("-inf")
        if reached is not None:
            self._reached = reached
