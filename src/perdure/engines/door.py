"""Lets requests in while the store is open, in the process that opened it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.errors import EngineError


class Door:
    """One per open store; whoever holds it open can rely on the threads behind it being there."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._is_shut = False

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Keep `close()` out for a moment; raises EngineError when the store is closed or a parent process's."""
        # Looked at before the lock is touched: a forked child may have inherited it in the locked state.
        if os.getpid() != self._pid:
            raise EngineError(
                "This store was opened by the parent process, and connections must not cross a fork.",
                "Open the store again in the child process.",
            )
        with self._lock:
            if self._is_shut:
                raise EngineError("The store is closed.", "Open it again to go on.")
            yield

    def shut(self) -> bool:
        """Let nothing more in; whether this call did that. In a forked child there is nothing to shut."""
        if os.getpid() != self._pid:
            return False
        with self._lock:
            was_open, self._is_shut = not self._is_shut, True
        return was_open
