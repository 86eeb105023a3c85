"""Accepts requests only while the store is open, and only in the process that opened it."""

from __future__ import annotations

import os
import threading

from perdure.errors import EngineError


class OpenGuard:
    """One for each open store. While its lock is held, the store is not closed and its threads run.

    with open_guard.lock:
        open_guard.check()
        ...

    The lock is a plain lock and not taken by a method: an interrupt in the middle of a method would leave it locked.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._is_shut = False

    @property
    def lock(self) -> threading.Lock:
        """The lock that keeps `close()` waiting. Raises EngineError in a child of the process that opened the store."""
        # Checked before the lock is used: a forked child may have inherited it in the locked state.
        if os.getpid() != self._pid:
            raise EngineError(
                "This store was opened by the parent process, and connections must not cross a fork.",
                "In the child process call app.close() first, and make new clients with app.client(): the app then"
                " opens connections of its own.",
            )
        return self._lock

    def check(self) -> None:
        """Raise EngineError if the store is closed; call it with the lock held."""
        if self._is_shut:
            raise EngineError("The store is closed.", "Open it again to go on.")

    def check_unlocked(self) -> None:
        """Check the same and the process, for callers that keep `close()` waiting by other means than the lock."""
        if self._is_shut or os.getpid() != self._pid:
            with self.lock:
                self.check()

    def shut(self) -> bool:
        """Refuse all further requests; whether this call closed the store. A forked child has nothing to close."""
        if os.getpid() != self._pid:
            return False
        with self._lock:
            was_open, self._is_shut = not self._is_shut, True
        return was_open
