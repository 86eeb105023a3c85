"""How many of the machine's processors were busy for a while, whoever kept them so: what a second worker could use."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_IDLE, _WAITING = 3, 4
_LEAST = 0.1
"""For a shorter time, in seconds, the system's ticks say nothing."""


class Processors:
    """Looks at them from now on."""

    def __init__(self) -> None:
        self._began, self._idle = time.monotonic(), _idle_ticks()

    def busy(self) -> float | None:
        """How many were busy on the average; None where the system does not tell, or the time was too short."""
        passed, idle = time.monotonic() - self._began, _idle_ticks()
        if passed < _LEAST or idle is None or self._idle is None:
            return None
        count = os.cpu_count() or 1
        return min(count, max(0.0, count - (idle - self._idle) / os.sysconf("SC_CLK_TCK") / passed))


def _idle_ticks() -> int | None:
    """How long all processors together have had nothing to do."""
    try:
        fields = _STAT.read_text().splitlines()[0].split()[1:]
    except OSError:
        return None
    return int(fields[_IDLE]) + int(fields[_WAITING])
