"""How a running part lives through an outage of the store: it tries again with growing, jittered pauses."""

from __future__ import annotations

from random import Random

from perdure.errors import EngineError
from perdure.runtime.outage import Outage

_FIRST = 0.05
_LONGEST = 5.0


class Trouble:
    """The failed calls of one part."""

    def __init__(self, part: str, *, random: Random, outage: Outage) -> None:
        self._part = part
        self._random = random
        self._outage = outage
        self._failures = 0

    @property
    def is_going_on(self) -> bool:
        """Whether the newest call failed."""
        return self._failures > 0

    def failed(self, error: EngineError) -> float:
        """Note a failed call; gives the seconds to wait before the next."""
        pause = min(_FIRST * 2.0 ** min(self._failures, 10), _LONGEST)
        pause *= self._random.uniform(0.5, 1.0)
        self._failures += 1
        self._outage.failed(self._part, error, pause)
        return pause

    def succeeded(self) -> None:
        """Note a call that the store answered; not for a step that made none."""
        self._failures = 0
        self._outage.succeeded(self._part)

    def gave_up(self) -> None:
        """Note that the failed call is not made again."""
        self._failures = 0
        self._outage.gave_up(self._part)
