"""Follows what operators set about queues: reads the settings every second, and soon after a hint.

It knows for each queue how it is treated now: what the operator says over what configuration and code say. When
something changed, whoever fetches is told, since a limit may have been raised.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure.model.queue.fairness import Fairness
from perdure.model.queue.settings import NOTHING_SAID, QueueSettings
from perdure.model.state import Lane
from perdure.runtime.handler import Registry
from perdure.runtime.periodic.loop import NotAsked
from perdure.store import Store
from perdure.system.clock import Clock

_EVERY = 1.0
_SOONEST = 0.2
"""Hints may come every few milliseconds; the settings are read no more often than this."""


class Tuner:
    """Calls settings."""

    def __init__(self, *, store: Store, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._changed: Callable[[], None] | None = None
        self._said: dict[str, QueueSettings] = {}
        self._known: dict[str, Fairness] = {}
        self._read_at: float | None = None

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call this after each change of the settings."""
        self._changed = changed

    def fairness(self, queue: str) -> Fairness:
        """How the queue is treated now."""
        found = self._known.get(queue)
        if found is None:
            found = self._registry.fairness(queue, self._said.get(queue, NOTHING_SAID))
            self._known[queue] = found
        return found

    def is_limited(self, queue: str, lane: Lane) -> bool:
        """Whether a limit keeps jobs of this queue and lane back, so that the end of one lets another start."""
        fairness = self.fairness(queue)
        return fairness.concurrency is not None or (lane == "retry" and fairness.max_retries_running is not None)

    async def step(self) -> float:
        """Read the settings, unless that was just done; the seconds until the next look."""
        if self._read_at is not None and (wait := self._read_at + _SOONEST - self._clock.monotonic()) > 0:
            return NotAsked(wait)
        said = await self._store.settings()
        self._read_at = self._clock.monotonic()
        if said != self._said:
            self._said = said
            self._known.clear()
            if self._changed is not None:
                self._changed()
        return _EVERY
