"""Keeps the write-ahead log short: one owner at a time copies it into the file and truncates it.

SQLite below 3.51.3 can lose pages when a checkpoint meets a writer that starts the log anew. So no connection of
Perdure checkpoints by itself; after a commit that left the log long, the writer takes a lock of its own file beside the
database, and then lets SQLite do a TRUNCATE checkpoint, which holds the write lock.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3

from perdure.clock import SystemClock
from perdure.engines.sqlite.connection import BUSY_TIMEOUT

THRESHOLD = 8 * 1024 * 1024
_PATIENCE = 5.0
"""After a checkpoint that others were in the way of, how many seconds to leave it alone unless the log doubles."""


class Checkpointer:
    """Decides when to checkpoint, and does it on the writer's connection."""

    def __init__(self, path: str) -> None:
        self._log = f"{path}-wal"
        self._next_size = THRESHOLD
        self._next_try = 0.0
        self._clock = SystemClock()
        self._lock = os.open(f"{path}-checkpoint", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def after_commit(self, connection: sqlite3.Connection) -> None:
        """Checkpoint if the log is long and no other process is at it."""
        size = self._log_size()
        if size < THRESHOLD:
            self._next_size, self._next_try = THRESHOLD, 0.0
            return
        if size < self._next_size and self._clock.monotonic() < self._next_try:
            return
        if not self._checkpoint(connection):
            self._next_size = 2 * size
            self._next_try = self._clock.monotonic() + _PATIENCE

    def close(self) -> None:
        os.close(self._lock)

    def _log_size(self) -> int:
        try:
            return os.stat(self._log).st_size
        except OSError:
            return 0

    def _checkpoint(self, connection: sqlite3.Connection) -> bool:
        """Whether the log was copied and truncated."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        try:
            # Long enough to get the write lock between others' commits, short enough not to wait for a slow reader.
            connection.execute("PRAGMA busy_timeout = 250")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error:
            # What was committed is safe in the log; a later commit tries again.
            return False
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT * 1000)}")
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        return not busy
