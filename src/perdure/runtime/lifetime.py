"""Until when a worker works: until it is stopped, or until something of it has ended and it cannot go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from perdure.errors import EngineLost, WorkerFailed
from perdure.model.failure import clean

_log = logging.getLogger("perdure")


class Lifetime:
    """What one run of a worker waits for."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.stopping_now = asyncio.Event()
        self._running: asyncio.Task[Any] | None = None
        self._failed: asyncio.Future[str] | None = None

    def begin(self) -> None:
        """The worker begins to run, in the current task."""
        self._running = asyncio.current_task()
        self._failed = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """Stop; called a second time, at once."""
        if self.stopping.is_set():
            self.stopping_now.set()
        self.stopping.set()

    def is_cancelled(self) -> bool:
        """Whether the task that runs the worker was cancelled."""
        return self._running is not None and self._running.cancelling() > 0

    def fail(self, text: str) -> None:
        """The worker cannot go on."""
        if self._failed is not None and not self._failed.done():
            self._failed.set_result(text)

    def keeper_failed(self, error: BaseException) -> None:
        """Nobody renews the lease any more, so there is no time to let attempts finish."""
        self.stopping_now.set()
        self.fail(_how_it_ended("keeper", error))

    async def until_over(self, parts: Sequence[asyncio.Task[None]]) -> str | None:
        """Wait until the worker is stopped; returns why it cannot go on, if that comes first.

        Raises EngineLost when the store is gone for good.
        [INV-24] A part that ends takes the worker down rather than leave it half alive.
        """
        assert self._failed is not None, "set when it began to run"
        stopping = asyncio.create_task(self.stopping.wait())
        futures: list[asyncio.Future[Any]] = [stopping, self._failed, *parts]
        try:
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if any(is_alive(part) for part in parts):
                raise  # the worker's owner ends it
            return "all tasks of its event loop were cancelled, by a handler or a task that a handler started"
        finally:
            stopping.cancel()
        if self._failed.done():
            return self._failed.result()
        ended = next((part for part in parts if part.done()), None)
        if ended is None:
            return None
        error = None if ended.cancelled() else ended.exception()
        if isinstance(error, EngineLost):
            raise error
        _log.debug("A part of the worker ended", exc_info=error)
        return _how_it_ended(ended.get_name(), error)


def is_alive(part: asyncio.Task[Any]) -> bool:
    """Whether a part goes on: it has not ended and nobody has cancelled it."""
    return not part.done() and not part.cancelling()


def failure(text: str) -> WorkerFailed:
    """The error of a worker that cannot go on."""
    return WorkerFailed(f"The worker cannot go on: {text}.", "Start it anew; its jobs are given back or recovered.")


def _how_it_ended(part: str, error: BaseException | None) -> str:
    if error is None:
        return f"its {part} was cancelled, by a handler or a task that a handler started"
    return f"its {part} failed with {type(error).__name__}: {clean(str(error), 300)}"
