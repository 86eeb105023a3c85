"""Limits how often the same thing is logged, so that a client or an outage cannot fill the disk with log lines."""

from __future__ import annotations

import logging

from perdure.system.clock import Clock, SystemClock
from perdure.system.fork import lock_of
from perdure.text.plural import plural

EVERY = 10.0
"""At most one line of a kind is written in this many seconds."""
_MOST_KINDS = 200
"""How many kinds are remembered; a library may put what differs into the message itself."""


class LogLimit:
    """Counts how often each kind of message comes, and lets one through from time to time; safe in any thread."""

    def __init__(self, every: float = EVERY, clock: Clock | None = None) -> None:
        self._every = every
        self._clock = clock or SystemClock()
        self._lock = lock_of(self)
        self._kinds: dict[str, tuple[float, int]] = {}
        """By kind: when the next line may be written, and how many were left out since the last one."""

    def count(self, kind: str) -> int:
        """How many messages of this kind the line to be written now stands for; 0: do not write one."""
        now = self._clock.monotonic()
        with self._lock:
            if len(self._kinds) >= _MOST_KINDS and kind not in self._kinds:
                self._kinds.clear()
            due, left_out = self._kinds.get(kind, (now, 0))
            if now < due:
                self._kinds[kind] = (due, left_out + 1)
                return 0
            self._kinds[kind] = (now + self._every, 0)
            return left_out + 1

    def warn(self, logger: logging.Logger, kind: str, *values: object) -> None:
        """Write `kind % values` as a warning, with how often it came, if its turn has come."""
        count = self.count(kind)
        if count:
            times = "" if count == 1 else f" ({plural(count, 'time')} since the last such line)"
            logger.warning(f"{kind}%s", *values, times)


class RepeatFilter(logging.Filter):
    """Lets each message of a logger through once in a while; for loggers of libraries that log every bad request."""

    def __init__(self, limit: LogLimit) -> None:
        super().__init__()
        self._limit = limit

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        count = self._limit.count(str(record.msg))
        if count > 1:
            record.msg = f"{str(record.msg).rstrip()} ({plural(count, 'time')} since the last such line)"
        return count > 0
