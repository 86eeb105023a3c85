"""Looks at the store for those metrics that only it knows, seldom and never for long.

A look runs in a thread of its own, one at a time. Whoever asks waits for it a moment and then takes what the look
before found, so that a scrape is never late and never fails. How long a look is good for follows how long it took:
looking takes at most a twentieth of the time, however large the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

import msgspec

from perdure.store import Store
from perdure.store.reads import QueueInfo
from perdure.system.clock import Clock
from perdure.system.fork import lock_of

_GOOD_FOR = 5.0
_PATIENCE = 2.0
_REST = 20


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the store held at a moment of its own clock."""

    at: datetime
    queues: tuple[QueueInfo, ...]
    workers: int
    engine: str


class _Round:
    """One look that is under way."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.has_answer = False
        """The store answers; counting may take longer than anybody waits, and is no sign of trouble."""


class Look:
    """The newest that is known of the store."""

    def __init__(self, store: Callable[[], Store], clock: Clock, patience: float = _PATIENCE) -> None:
        self._store = store
        self._clock = clock
        self._patience = patience
        self._lock = lock_of(self)
        self._round: _Round | None = None
        self._good_until = float("-inf")
        self._seen: Seen | None = None
        self._is_up = False

    def take(self) -> tuple[bool, Seen | None]:
        """Whether the store answers, and what it held when it was last asked; nothing when it does not answer."""
        with self._lock:
            if self._round is None and self._clock.monotonic() >= self._good_until:
                self._round = _Round()
                threading.Thread(target=self._look, args=(self._round,), name="perdure-look", daemon=True).start()
            here = self._round
        is_late = here is not None and not here.is_over.wait(self._patience)
        with self._lock:
            is_up = here.has_answer if here is not None and is_late else self._is_up
            return is_up, self._seen if is_up else None

    def _look(self, here: _Round) -> None:
        began = self._clock.monotonic()
        seen = None
        try:
            store = self._store()
            now = store.now().wait()
            here.has_answer = True
            queues, registered = store.queues().wait(), store.workers().wait()
            alive = sum(worker.lease_until > now for worker in registered)
            seen = Seen(at=now, queues=tuple(queues), workers=alive, engine=store.capabilities.engine)
        except Exception:  # whatever is wrong with the store, a scrape says so by `up` and goes on
            pass
        finally:
            ended = self._clock.monotonic()
            with self._lock:
                self._is_up = seen is not None
                self._seen = seen or self._seen
                self._good_until = ended + max(_GOOD_FOR, _REST * (ended - began))
                self._round = None
            here.is_over.set()
