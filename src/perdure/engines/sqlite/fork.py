"""Closes SQLite's connections before a fork, so that parent and child each open their own afterwards.

SQLite keeps one record per file and process of the locks that it holds. A child inherits this record, but not the
locks: a connection that it opened would rely on locks of the parent, and could wait for ever for a mutex that one of
the parent's threads held at the fork. The only way to forget the record is to close all connections. The parent opens
its connections again with its next calls; the child opens a store of its own.

A fork waits until the calls under way are done, a few seconds at most.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

from perdure.system.clock import SystemClock

_PATIENCE = 5.0
"""How many seconds a fork waits for calls that are under way."""


class Suspendable(Protocol):
    """Something that has a connection, which is used by one thread at a time."""

    def lock_for_fork(self) -> threading.Lock | None:
        """What keeps others from the connection while it is held; None if the calling thread is using it."""
        ...

    def suspend(self) -> None:
        """Close the connection; the next use opens it again. The lock is held."""
        ...


_clock = SystemClock()
_parts: list[weakref.ref[Suspendable]] = []
_held: list[threading.Lock] = []
opening = threading.Lock()
"""Held while a connection is opened, so that no fork comes between."""


def suspend_at_fork(part: Suspendable) -> None:
    """Have the connection of this part closed before every fork."""
    _parts[:] = [each for each in _parts if each() is not None]
    _parts.append(weakref.ref(part))


def _before() -> None:
    deadline = _clock.monotonic() + _PATIENCE
    _take(opening, deadline)
    for part in [part for reference in _parts if (part := reference()) is not None]:
        lock = part.lock_for_fork()
        if lock is not None and _take(lock, deadline):
            part.suspend()


def _take(lock: threading.Lock, deadline: float) -> bool:
    is_taken = lock.acquire(timeout=max(0.0, deadline - _clock.monotonic()))
    if is_taken:
        _held.append(lock)
    return is_taken


def _after() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    global opening
    _after()
    opening = threading.Lock()
    _parts.clear()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
