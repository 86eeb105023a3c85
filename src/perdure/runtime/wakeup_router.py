"""Passes hints on to the parts of a worker: to the fetcher at once, to the others when its fetch is under way.

Most hints are of jobs to be fetched, and what the others ask the store would stand in the way of that. Some are of jobs
that wait for their time, so the promoter looks soon after each. Few are for the rest: where jobs come one by one, to
look each time for cancellations, settings and schedules would cost more than the jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from perdure.runtime.membership import is_on, on_loop
from perdure.runtime.periodic.loop import Loop

_SOON = 0.005
"""How many seconds after a hint the parts that do not fetch look what it was about."""
_SELDOM = 0.1
"""How many seconds lie at least between two looks of the rest."""


class WakeupRouter:
    """Where the hints of one worker arrive; it lives on one event loop."""

    def __init__(self, *, fetching: Callable[[], None], promoting: Loop, rest: Sequence[Loop]) -> None:
        self._fetching = fetching
        self._promoting = promoting
        self._rest = rest
        self._loop = asyncio.get_running_loop()
        self._is_on_its_way = False
        self._waking_others: asyncio.TimerHandle | None = None
        self._waking_rest: asyncio.TimerHandle | None = None
        self._rest_woken_at = float("-inf")

    def hear(self) -> None:
        """Take a hint, from whatever thread it comes; one on its way is enough."""
        if is_on(self._loop):
            self._wake()
        elif not self._is_on_its_way:
            self._is_on_its_way = True
            on_loop(self._loop, self._wake)

    def _wake(self) -> None:
        self._is_on_its_way = False
        self._fetching()
        if self._waking_others is None:
            self._waking_others = self._loop.call_later(_SOON, self._wake_others)

    def _wake_others(self) -> None:
        self._waking_others = None
        self._promoting.wake()
        if self._waking_rest is None:
            moment = max(self._loop.time(), self._rest_woken_at + _SELDOM)
            self._waking_rest = self._loop.call_at(moment, self._wake_rest)

    def _wake_rest(self) -> None:
        self._waking_rest = None
        self._rest_woken_at = self._loop.time()
        for part in self._rest:
            part.wake()
