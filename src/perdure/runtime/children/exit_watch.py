"""Notices the end of a child process through the process itself.

The socket to a child is no sure sign: a process that the child started may hold a copy of it open for as long as it
lives. Linux gives a descriptor that becomes readable when the process ends; elsewhere the process is polled.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable

_POLL = 0.05
"""How many seconds pass between two looks at a process where the system has no descriptor for it."""


class ExitWatch:
    """Calls `ended` once, on the event loop, when the process has ended; until it is closed."""

    def __init__(self, process: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._ended = ended
        self._descriptor = _open(process.pid)
        self._timer: asyncio.TimerHandle | None = None
        if self._descriptor is None:
            self._look()
        else:
            self._loop.add_reader(self._descriptor, self._end)

    def close(self) -> None:
        """Stop watching."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        if self._process.poll() is None:
            self._timer = self._loop.call_later(_POLL, self._look)
        else:
            self._timer = self._loop.call_later(0, self._end)

    def _end(self) -> None:
        self.close()
        self._ended()


def _open(pid: int) -> int | None:
    """A descriptor of the process; None where the system has none, or no descriptor is free."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
