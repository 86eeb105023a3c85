"""The process of a worker that has it to itself: ends it in time, whatever handlers left behind in it.

After `Worker.run()` the process is still alive: asyncio waits for the tasks of the loop, and then Python for threads
and exit functions. A handler may have left some that never end. A program that goes on with other work after its worker
has stopped is left alone until its main thread has ended.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from datetime import timedelta
from typing import NoReturn

from perdure.runtime.liveness.exit_guard import ExitGuard
from perdure.system.clock import Clock

LATE = 5.0
"""Within how many seconds after its grace period a worker that was told to stop has ended, whatever handlers do."""

EXIT_CODE = 1
"""The exit code of a process that a watchdog ends."""

_MARGIN = 0.2
"""How many seconds before its deadline a process is ended, so that it has ended at the deadline."""

_GUARD_MARGIN = 0.05
"""The same of the exit guard, which acts last."""

_BEAT_EVERY = 0.5
"""How many seconds pass at least between two beats for the exit guard."""

_FLUSH = 0.2
"""How many seconds the output streams have to take what is in their buffers."""

_log = logging.getLogger("perdure")


class OwnProcess:
    """One process, from the start of its worker on. Make it in the main thread."""

    def __init__(self, *, clock: Clock, grace: timedelta, max_block: timedelta) -> None:
        self._clock = clock
        self._beat_at = clock.monotonic()
        self._is_signalled = False
        self._left = threading.Event()
        self._guarding = threading.Lock()
        """Held while the guard is used, so that nobody writes to a descriptor that has been closed."""
        self._guard: ExitGuard | None = None
        try:
            self._guard = ExitGuard(
                grace=grace.total_seconds(), late=LATE - _GUARD_MARGIN, max_block=max_block.total_seconds()
            )
        except OSError as error:
            _log.warning("The process that ends a worker whose interpreter hangs cannot be started: %s", error)

    def beat(self) -> None:
        """Tell the exit guard that the process runs; may be called as often as one likes."""
        now = self._clock.monotonic()
        if now - self._beat_at >= _BEAT_EVERY:
            self._beat_at = now
            with self._guarding:
                if self._guard is not None:
                    self._guard.beat()

    def has_signal(self) -> bool:
        """Whether a signal to stop has come, though Python's handler may not have run yet."""
        with self._guarding:
            if self._guard is not None and self._guard.has_signal():
                self._is_signalled = True
        return self._is_signalled

    def leave(self) -> None:
        """The event loop is over, and the program goes on or ends; call it in the main thread."""
        with self._guarding:
            if self._guard is not None:
                self._guard.stop()
                self._guard = None
        self._left.set()

    def wait_until_left(self, deadline: float) -> bool:
        """Wait until the program has left the event loop, or shortly before the deadline; whether it has left."""
        return self._left.wait(max(0.0, self._remaining(deadline)))

    def see_end(self, deadline: float) -> None:
        """End the process at the deadline; called in a daemon thread, which ends with the process."""
        if not self.wait_until_left(deadline):
            self.end("The worker has stopped, but its process does not end: a task is left. It is ended.")
        threading.main_thread().join()
        # Only now do exit functions run, and threads that are no daemons get waited for.
        remaining = self._remaining(deadline)
        threading.Event().wait(remaining if remaining > 0 else LATE - 1.0)
        self.end("The program is over, but its process does not end: a thread or exit function is left. It is ended.")

    def end(self, why: str = "") -> NoReturn:
        """End the process at once, whatever else is going on in it."""
        with contextlib.suppress(RuntimeError, MemoryError):
            writer = threading.Thread(target=_say, args=(why,), daemon=True)
            writer.start()
            writer.join(_FLUSH)
        os._exit(EXIT_CODE)

    def _remaining(self, deadline: float) -> float:
        return deadline - self._clock.monotonic() - _MARGIN


def _say(why: str) -> None:
    # In a thread of its own: a handler may have left a lock of a stream or of logging held for ever.
    with contextlib.suppress(Exception):
        if why:
            _log.error(why)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
