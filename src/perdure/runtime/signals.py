"""Hears the signals that stop a process, also while a handler blocks the event loop.

asyncio hears signals on the loop only. Python's own signal handler runs in the main thread between two steps of
whatever runs there, so that the watchdog knows of the stop at once, and the loop is told as soon as it is free.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def stopping_signals(
    loop: asyncio.AbstractEventLoop, *, heard: Callable[[], None], stop: Callable[[], None]
) -> Iterator[None]:
    """While inside, call `heard` at once when a signal comes, and `stop` on the loop; only in the main thread."""

    def handle(number: int, frame: FrameType | None) -> None:
        heard()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending already
            loop.call_soon_threadsafe(stop)

    before = {number: signal.signal(number, handle) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
