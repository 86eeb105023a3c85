"""Claimed jobs on their way into the slots, first come, first served; only the event loop's thread changes it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from perdure.runtime.in_flight import Holding


class Buffer:
    """A queue with many readers whose `get` costs nothing while there is something to get."""

    def __init__(self) -> None:
        self._holdings: deque[Holding] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._holdings)

    def put(self, holdings: Sequence[Holding]) -> None:
        """Add them at the end, and call as many of those who wait."""
        self._holdings.extend(holdings)
        self._call(len(holdings))

    async def get(self) -> Holding:
        """The first; waits for one."""
        while not self._holdings:
            called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(called)
            try:
                await called
            except asyncio.CancelledError:
                if called.done() and not called.cancelled() and self._holdings:
                    self._call(1)  # the call reached one who is leaving
                raise
        return self._holdings.popleft()

    def take_all(self) -> list[Holding]:
        """Everything, away from the slots."""
        taken = list(self._holdings)
        self._holdings.clear()
        return taken

    def waiting(self) -> list[Holding]:
        """Those that no slot has taken, also asked from another thread."""
        while True:
            try:
                return list(self._holdings)
            except RuntimeError:
                continue  # a slot took one at this very moment

    def _call(self, count: int) -> None:
        while count and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                count -= 1
