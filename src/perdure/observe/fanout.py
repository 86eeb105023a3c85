"""Tells several observers at once; one that raises costs neither the others nor the worker anything."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from perdure.model.event import Event, Observer, tell_all

logger = logging.getLogger("perdure")


class Fanout:
    """All observers of an app, as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        self._faulty: set[int] = set()

    def tell(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer.tell(event)
            except Exception as error:
                self._complain(observer, error)

    def tell_all(self, events: Sequence[Event]) -> None:
        for observer in self._observers:
            # Who takes them one by one, and fails at one, is told the others all the same.
            parts = [events] if hasattr(observer, "tell_all") else [(event,) for event in events]
            for part in parts:
                try:
                    tell_all(observer, part)
                except Exception as error:
                    self._complain(observer, error)

    def _complain(self, observer: Observer, error: Exception) -> None:
        """Once for each observer: one that fails will fail at every event."""
        if id(observer) not in self._faulty:
            self._faulty.add(id(observer))
            try:
                logger.error("An observer raised %s; it is told on, without further notice", type(error).__name__)
            except Exception:  # a log that cannot be written must not stop the worker either
                pass
