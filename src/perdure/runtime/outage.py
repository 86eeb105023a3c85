"""The outages of a worker's store, told once each: when the first part fails, and when every part succeeds again.

Parts notice an outage at different moments. The outage begins with the first failed call of any part. It is over when
each part that failed has made a successful call; a part that merely had nothing to ask proves nothing. So a store that
can be read and not written is in an outage until it can be written. Of short outages that follow each other closely
only the first is told, so that calls which fail and succeed in turns do not fill the log.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import NoReturn

from perdure.errors import EngineBusy, EngineError, EngineFull, EngineLost, EngineUnreachable, EngineUnusable
from perdure.model.event import Observer, StoreRecovered, StoreTrouble
from perdure.system.clock import Clock

_FLAPPING = 10.0
"""For how many seconds after an outage was told short new ones are not told."""
_SHORT = 1.0
"""After how many seconds an outage is told in any case."""


def can_pass(error: EngineError) -> bool:
    """Whether waiting can help: the engine is away, busy or full, and not closed to us for good."""
    return isinstance(error, EngineUnreachable | EngineBusy | EngineFull) and not isinstance(error, EngineUnusable)


class Outage:
    """Whether the store of one worker, or of a scheduler by itself, is away."""

    def __init__(self, who: str, *, clock: Clock, observer: Observer) -> None:
        self._who = who
        self._clock = clock
        self._observer = observer
        self._failing: set[str] = set()
        self._began: float | None = None
        self._is_told = False
        self._told_at = float("-inf")
        self._lost: EngineLost | None = None
        self._is_lost = asyncio.Event()

    @property
    def is_final(self) -> bool:
        """Whether the store is gone for good: no call will succeed again."""
        return self._lost is not None

    async def until_lost(self) -> NoReturn:
        """Wait until the store is gone for good, and raise the error that says so."""
        await self._is_lost.wait()
        assert self._lost is not None, "the error comes before the event"
        raise self._lost

    def failed(self, part: str, error: Exception, retry_in: float) -> None:
        """A part's call failed; it tries again after so many seconds."""
        if isinstance(error, EngineLost) and self._lost is None:
            self._lost = error
            self._is_lost.set()
        now = self._clock.monotonic()
        self._failing.add(part)
        if self._began is None:
            self._began = now
        if not self._is_told and (now - self._told_at >= _FLAPPING or now - self._began >= _SHORT):
            self._is_told, self._told_at = True, now
            pause = timedelta(seconds=round(retry_in, 3))
            text = str(error) or type(error).__name__
            self._observer.tell(StoreTrouble(part=self._who, error=text, retry_in=pause))

    def succeeded(self, part: str) -> None:
        """A part's call was answered by the store."""
        if self._began is None:
            return
        self._failing.discard(part)
        if not self._failing:
            lasted = timedelta(seconds=self._clock.monotonic() - self._began)
            self._began = None
            if self._is_told:
                self._is_told = False
                self._observer.tell(StoreRecovered(part=self._who, outage=lasted))

    def gave_up(self, part: str) -> None:
        """A part that failed does not try again; the next success of any part may end the outage."""
        self._failing.discard(part)
