"""Hears the signals that stop a process, also while a handler blocks the event loop.

asyncio hears signals on the loop only. Python's own signal handler runs in the main thread between two steps of what
runs there. So the watchdog knows of a stop at once, and the loop is told as soon as it is free.

The watchdog uses SIGURG to break off a handler that blocks the loop past its timeout. The system ignores that signal
where nobody handles it, and few programs use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from perdure.system.clock import Clock

STOPPING = (signal.SIGTERM, signal.SIGINT)
INTERRUPTING = signal.SIGURG

_ONE_STOP = 1.0
"""Within how many seconds the signals to a supervised worker count as one."""


@contextlib.contextmanager
def stopping_signals(
    loop: asyncio.AbstractEventLoop,
    *,
    heard: Callable[[], None],
    stop: Callable[[], None],
    interrupted: Callable[[FrameType | None], None],
) -> Iterator[None]:
    """While inside, call `heard` at once when a signal to stop comes, and `stop` on the loop; only in the main thread.

    `interrupted` is called in the main thread on SIGURG, and may raise there.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        heard()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending already
            loop.call_soon_threadsafe(stop)

    handlers = dict.fromkeys(STOPPING, handle)
    handlers[INTERRUPTING] = lambda number, frame: interrupted(frame)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)


def one_stop(call: Callable[[], None], clock: Clock) -> Callable[[], None]:
    """Make the call once for signals that come together.

    Service managers signal a whole group of processes, and the supervisor passes its own signal on: a worker hears one
    stop twice, and must not take it for the second, which means at once.
    """
    last: float | None = None

    def heard() -> None:
        nonlocal last
        now = clock.monotonic()
        if last is None or now - last > _ONE_STOP:
            last = now
            call()

    return heard
