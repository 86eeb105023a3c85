"""How a running part survives an outage: it tries again with growing, jittered pauses.

An outage is whatever ends by itself: the engine cannot do its part, the operating system refuses a descriptor, a socket
or a thread, or memory is short. Any other error is a defect, and is raised.
"""

from __future__ import annotations

from random import Random

from perdure.errors import EngineError
from perdure.runtime.outage import Outage
from perdure.system.exhaustion import is_exhaustion

_FIRST = 0.05
_LONGEST = 5.0


def is_outage(error: BaseException) -> bool:
    """Whether the same call may succeed later without any change to the program."""
    return isinstance(error, EngineError | OSError) or is_exhaustion(error)


class Backoff:
    """The failed calls of one part."""

    def __init__(self, part: str, *, random: Random, outage: Outage) -> None:
        self._part = part
        self._random = random
        self._outage = outage
        self._failures = 0

    @property
    def is_final(self) -> bool:
        """Whether the store is gone for good, so that no further call can succeed."""
        return self._outage.is_final

    @property
    def is_going_on(self) -> bool:
        """Whether the newest call failed."""
        return self._failures > 0

    def failed(self, error: Exception) -> float:
        """Note a failed call; gives the seconds to wait before the next. Raises an error that is no outage."""
        if not is_outage(error):
            raise error
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
