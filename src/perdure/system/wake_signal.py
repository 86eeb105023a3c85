"""What a running part of a worker waits for between two steps: somebody rings, or the time is up."""

from __future__ import annotations

import asyncio


class Bell:
    """Rung by anybody on the event loop, heard by the one who waits; one that rang before is heard at once.

    It is what an event with a timeout around it would be, in fewer steps: a worker that has had nothing to do for a
    while takes each of them slowly, and a job is waiting for it.
    """

    __slots__ = ("_is_rung", "_waiting")

    def __init__(self) -> None:
        self._is_rung = False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Have the one who waits go on, now or when it comes to wait."""
        self._is_rung = True
        _end(self._waiting)

    def silence(self) -> None:
        """Forget that it rang."""
        self._is_rung = False

    async def heard(self, seconds: float) -> bool:
        """Wait until it rings, so many seconds at most; whether it did. It is silent afterwards."""
        if not self._is_rung:
            loop = asyncio.get_running_loop()
            waiting = self._waiting = loop.create_future()
            timer = loop.call_later(seconds, _end, waiting)
            try:
                await waiting
            finally:
                self._waiting = None
                timer.cancel()
        is_rung, self._is_rung = self._is_rung, False
        return is_rung


def _end(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
