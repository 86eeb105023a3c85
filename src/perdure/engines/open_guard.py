"""Lets requests in while the store is open, in the process that opened it."""

from __future__ import annotations

import os
import threading

from perdure.errors import EngineError


class OpenGuard:
    """One per open store; whoever holds it open can rely on the threads behind it being there.

    with door.lock:
        door.check()
        ...

    The lock is entered as itself, not through a method: an interrupt in the middle of a method would leave it locked.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._is_shut = False

    @property
    def lock(self) -> threading.Lock:
        """Keeps `close()` out while it is held; raises EngineError in a child of the process that opened the store."""
        # Looked at before the lock is touched: a forked child may have inherited it in the locked state.
        if os.getpid() != self._pid:
            raise EngineError(
                "This store was opened by the parent process, and connections must not cross a fork.",
                "In the child process call app.close() first, and make new clients with app.client(): the app then"
                " opens connections of its own.",
            )
        return self._lock

    def check(self) -> None:
        """Raise EngineError when the store is closed; the lock is held."""
        if self._is_shut:
            raise EngineError("The store is closed.", "Open it again to go on.")

    def check_unlocked(self) -> None:
        """The same, and where the store was opened, for who keeps `close()` out by other means than the lock."""
        if self._is_shut or os.getpid() != self._pid:
            with self.lock:
                self.check()

    def shut(self) -> bool:
        """Let nothing more in; whether this call did that. In a forked child there is nothing to shut."""
        if os.getpid() != self._pid:
            return False
        with self._lock:
            was_open, self._is_shut = not self._is_shut, True
        return was_open
