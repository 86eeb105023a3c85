"""Makes ids on the client's side, before anything is sent: a repeated enqueue after a lost reply is the same job."""

from __future__ import annotations

import functools
import os
from random import Random

from perdure.model.job import CHANCE, NO_ID, JobId, WorkerId, format_chance, format_id, id_moment, join_id, put_id
from perdure.system.clock import Clock
from perdure.system.fork import lock_of


class Ids:
    """A source of UUIDv7 ids that sort in the order in which they were made here."""

    def __init__(self, clock: Clock, random: Random, *, stock: int = 1) -> None:
        self._clock = clock
        self._random = random
        self._lock = lock_of(self)
        self._moment, self._noise = divmod(NO_ID, 1 << CHANCE)
        """What the last id was made of."""
        self._most = stock
        self._stock: list[tuple[int, str]] = []
        self._pid = 0

    def job(self) -> JobId:
        with self._lock:
            moment = id_moment(self._clock.microseconds())
            noise, chance = self._draw()
            if moment <= self._moment:
                return format_id(self._place(moment, noise, 1))
            # Later than the last one, it is above it whatever chance says: its parts need not be put together first.
            self._moment, self._noise = moment, noise
            return join_id(moment, chance)

    def jobs(self, count: int) -> list[JobId]:
        """Many at once: the first by the clock and by chance, the others next to it."""
        if count == 1:
            return [self.job()]
        with self._lock:
            noise, _ = self._draw()
            first = self._place(id_moment(self._clock.microseconds()), noise, count)
        return [format_id(body) for body in range(first, first + count)]

    def worker(self) -> WorkerId:
        return WorkerId(self.job())

    def _place(self, moment: int, noise: int, count: int) -> int:
        """The first of so many values in a row, all above the last; the lock is held."""
        first = put_id(moment, noise, self._moment << CHANCE | self._noise)
        self._moment, self._noise = divmod(first + count - 1, 1 << CHANCE)
        return first

    def _draw(self) -> tuple[int, str]:
        """Random bits for an id and their text, made many at once: where they come from the system, a call is slow."""
        # A forked child has its parent's stock, and must not use it.
        pid = os.getpid()
        if not self._stock or self._pid != pid:
            self._pid = pid
            bits = self._random.getrandbits(CHANCE * self._most)
            noises = [bits >> CHANCE * place & (1 << CHANCE) - 1 for place in range(self._most)]
            self._stock = [(noise, format_chance(noise)) for noise in noises]
        return self._stock.pop()


@functools.cache
def version() -> str:
    """The version of Perdure that runs here."""
    from importlib.metadata import PackageNotFoundError  # slow to import, and only workers ask
    from importlib.metadata import version as installed

    try:
        return installed("perdure")
    except PackageNotFoundError:
        return "unknown"
