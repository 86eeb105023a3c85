"""What promoter and fetcher tell each other about many jobs that are due at once.

A job that is promoted and then claimed is written twice. A worker that has taken all that was ready can as well claim
due jobs where they wait; the promoter leaves them to its fetcher for as long as those fetches are filled.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure.clock import Clock

_PATIENCE = 0.25
"""How many seconds the promoter waits for a fetch that claims some of it: longer than what is held in advance lasts."""


class Flood:
    """Whether there is a flood, and who sees to it."""

    def __init__(self, *, clock: Clock, begun: Callable[[], None], over: Callable[[], None]) -> None:
        self._clock = clock
        self._begun = begun
        self._over = over
        self._is_hungry = True
        self._is_vain = False
        self._last = 0.0
        self.is_on = False
        """Whether the fetcher is to take what is due."""

    @property
    def may_begin(self) -> bool:
        """Whether the fetcher could take what is due: it found less ready than it had room for."""
        return self._is_hungry and not self._is_vain

    def begin(self) -> None:
        """More is due than was promoted: the fetcher is to take it."""
        self.is_on = True
        self._last = self._clock.monotonic()
        self._begun()

    def seconds_left(self) -> float:
        """How long what is due may be left to the fetcher; 0 when there is no flood, or nobody sees to it."""
        if not self.is_on:
            return 0.0
        left = self._last + _PATIENCE - self._clock.monotonic()
        if left <= 0:
            self._end()
        return max(0.0, left)

    def subside(self) -> None:
        """Nothing more is due."""
        self._is_vain = False

    def fetched(self, *, is_short: bool, due: int | None) -> None:
        """A fetch has ended: whether it found less than it had room for, and how many were due if it took those."""
        self._is_hungry = is_short
        if due is None or not self.is_on:
            return
        if is_short:
            # There is no more, or what is left is not for this worker: the promoter is to look at once.
            self._end()
            self._over()
        elif due > 0:
            self._last = self._clock.monotonic()

    def _end(self) -> None:
        self.is_on = False
        # All that is due is promoted before the fetcher is asked again, or the two would take turns for nothing.
        self._is_vain = True
