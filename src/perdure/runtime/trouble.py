"""How a running part lives through store trouble: waits with growing, jittered pauses and tells it once."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from perdure.clock import Clock
from perdure.errors import EngineError
from perdure.model.event import Observer, StoreRecovered, StoreTrouble

_FIRST = 0.05
_LONGEST = 5.0


class Trouble:
    """The outages of one part."""

    def __init__(self, part: str, *, clock: Clock, random: Random, observer: Observer) -> None:
        self._part = part
        self._clock = clock
        self._random = random
        self._observer = observer
        self._failures = 0
        self._began = 0.0

    @property
    def is_going_on(self) -> bool:
        """Whether the newest call failed."""
        return self._failures > 0

    def failed(self, error: EngineError) -> float:
        """Note a failed call; gives the seconds to wait before the next."""
        pause = min(_FIRST * 2.0 ** min(self._failures, 10), _LONGEST)
        pause *= self._random.uniform(0.5, 1.0)
        if self._failures == 0:
            self._began = self._clock.monotonic()
            self._observer.tell(
                StoreTrouble(part=self._part, error=str(error), retry_in=timedelta(seconds=round(pause, 3)))
            )
        self._failures += 1
        return pause

    def succeeded(self) -> None:
        """Note a call that went well."""
        if self._failures:
            self._failures = 0
            outage = timedelta(seconds=self._clock.monotonic() - self._began)
            self._observer.tell(StoreRecovered(part=self._part, outage=outage))
