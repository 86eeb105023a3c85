"""A signal that a running part of a worker waits for between two steps, with a time limit."""

from __future__ import annotations

import asyncio


class WakeSignal:
    """Set by any code on the event loop, awaited by one task. A signal that is already set ends the wait at once.

    It does what asyncio.Event inside a timeout does, in fewer steps: when an idle worker wakes up, a job is waiting,
    and the processor's caches are cold.
    """

    __slots__ = ("_is_set", "_waiting")

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: asyncio.Future[None] | None = None

    def notify(self) -> None:
        """End the current wait, or the next one."""
        self._is_set = True
        _end(self._waiting)

    def clear(self) -> None:
        """Take a notification back."""
        self._is_set = False

    async def wait(self, seconds: float) -> bool:
        """Wait for a notification, at most this many seconds; whether there was one. The signal is cleared."""
        if not self._is_set:
            loop = asyncio.get_running_loop()
            waiting = self._waiting = loop.create_future()
            timer = loop.call_later(seconds, _end, waiting)
            try:
                await waiting
            finally:
                self._waiting = None
                timer.cancel()
        was_set, self._is_set = self._is_set, False
        return was_set


def _end(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
