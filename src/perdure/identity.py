"""Makes ids on the client's side, before anything is sent: a repeated enqueue after a lost reply is the same job."""

from __future__ import annotations

import threading
from random import Random

from perdure.clock import Clock
from perdure.model.job import JobId, WorkerId, format_id, make_id


class Ids:
    """A source of UUIDv7 ids that sort in the order in which they were made here."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._last = 0
        self._lock = threading.Lock()

    def job(self) -> JobId:
        with self._lock:
            self._last = make_id(self._clock.now(), self._random.getrandbits(62), self._last)
            return format_id(self._last)

    def worker(self) -> WorkerId:
        return WorkerId(self.job())


def own_version() -> str:
    """The version of this Perdure, as workers tell it."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and only workers ask

    try:
        return version("perdure")
    except PackageNotFoundError:
        return "unknown"
