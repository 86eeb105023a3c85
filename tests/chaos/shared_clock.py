"""A wall clock that a test can set for several processes at once: the real time plus an offset in a shared file.

Only the wall clock moves. Clocks that never jump go on as they are, as when an administrator sets the system's time.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perdure.system.clock import SystemClock

VARIABLE = "TEST_CLOCK_OFFSET"
"""The environment variable with the path of the shared file."""
_OFFSET = struct.Struct("d")


class SharedClock:
    """The offset of the wall clock, in seconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_OFFSET.pack(0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _OFFSET.size)

    @property
    def offset(self) -> float:
        return float(_OFFSET.unpack_from(self._memory)[0])

    def set(self, offset: float) -> None:
        _OFFSET.pack_into(self._memory, 0, offset)


def follow_shared_clock() -> None:
    """Make Perdure's wall clock in this process follow the shared offset, if the environment names one."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    shared = SharedClock(Path(path))

    def now(_: SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=shared.offset)

    def microseconds(_: SystemClock) -> int:
        return time.time_ns() // 1000 + int(shared.offset * 1_000_000)

    SystemClock.now = now  # type: ignore[method-assign]
    SystemClock.microseconds = microseconds  # type: ignore[method-assign]
