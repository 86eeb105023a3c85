"""Makes ids on the client's side, before anything is sent: a repeated enqueue after a lost reply is the same job."""

from __future__ import annotations

import os
import threading
from random import Random

from perdure.clock import Clock
from perdure.model.job import JobId, WorkerId, format_id, make_id

_BITS = 62
"""How much of an id is left to chance."""


class Ids:
    """A source of UUIDv7 ids that sort in the order in which they were made here."""

    def __init__(self, clock: Clock, random: Random, *, stock: int = 1) -> None:
        self._clock = clock
        self._random = random
        self._last = 0
        self._lock = threading.Lock()
        self._most = stock
        self._stock: list[int] = []
        self._pid = 0

    def job(self) -> JobId:
        with self._lock:
            self._last = body = make_id(self._clock.now(), self._noise(), self._last)
        return format_id(body)

    def jobs(self, count: int) -> list[JobId]:
        """Many at once: the first by the clock and by chance, the others next to it."""
        if count == 1:
            return [self.job()]
        with self._lock:
            first = make_id(self._clock.now(), self._noise(), self._last)
            self._last = last = first + count - 1
        return [format_id(body) for body in range(first, last + 1)]

    def worker(self) -> WorkerId:
        return WorkerId(self.job())

    def _noise(self) -> int:
        """Random bits for an id, fetched many at once: where they come from the operating system, each call is slow."""
        # A forked child has its parent's stock, and must not use it.
        pid = os.getpid()
        if not self._stock or self._pid != pid:
            self._pid = pid
            bits = self._random.getrandbits(_BITS * self._most)
            self._stock = [bits >> _BITS * place & (1 << _BITS) - 1 for place in range(self._most)]
        return self._stock.pop()


def version() -> str:
    """The version of Perdure that runs here."""
    from importlib.metadata import PackageNotFoundError  # slow to import, and only workers ask
    from importlib.metadata import version as installed

    try:
        return installed("perdure")
    except PackageNotFoundError:
        return "unknown"
