"""Hints that something may be ready: they cut latency and may be lost, doubled or late; polling is the safety net."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Wakeups(Protocol):
    """A source of hints."""

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, soon after jobs may have become ready or due; gives the way to stop it.

        Hints come after commits of this process and, where the engine can tell, of others, at most one each few
        milliseconds.
        """
        ...
