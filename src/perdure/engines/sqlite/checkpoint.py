"""Keeps the write-ahead log short: one owner at a time copies it into the file, and has it begun anew.

The log's own file keeps its length, and the next round overwrites it: a commit that makes its file longer costs a sync
twice, for the file system has to note the length. For the same reason a new log that grows by many small commits is
made as long as it may become in one go. Only a log that has grown far too long is cut off.

SQLite below 3.51.3 can lose pages when a checkpoint meets a writer that starts the log anew. So no connection of
Perdure checkpoints by itself; after a commit that left the log long, the writer takes a lock of its own file beside the
database, lets SQLite do a checkpoint that holds the write lock, and starts the log anew itself before it lets others at
that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator

from perdure.engines.sqlite.log import Log
from perdure.engines.sqlite.sql import statement
from perdure.errors import EngineUnreachable
from perdure.system.clock import SystemClock

THRESHOLD = 8 * 1024 * 1024
_PATIENCE = 5.0
"""After a checkpoint that others were in the way of, how many seconds to leave it alone unless the log doubles."""
GAP = 0.005
"""For how many seconds after a look the log is taken to be as it was."""
_FAR_TOO_LONG = 4
"""From how many thresholds on the log's file is cut off."""
_DISK_SHARE = 16
"""The log is checkpointed from this part of the disk's size on, if that is less than THRESHOLD."""
_LEAST = 512 * 1024
"""The lowest size in bytes from which the log is checkpointed, however small the disk is."""
GROWN = 256 * 1024
"""How many bytes long a new log is before it is made longer; one that grows by as much between two looks is not."""


class Checkpointer:
    """Decides when to checkpoint, and does it on the writer's connection."""

    def __init__(self, path: str) -> None:
        self._log = Log(f"{path}-wal")
        self._most = _share_of_disk(path)
        self._next_size = self._threshold
        self._next_try = 0.0
        self._next_look = 0.0
        self._clock = SystemClock()
        self._last_size = 0
        self._lock = f"{path}-checkpoint"
        os.close(open_lock_file(self._lock))

    @property
    def _threshold(self) -> int:
        """The size in bytes from which the log is checkpointed."""
        return min(THRESHOLD, self._most)

    def after_commit(self, connection: sqlite3.Connection) -> None:
        """Checkpoint if the log is long and no other process is at it."""
        now = self._clock.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + GAP
        threshold = self._threshold
        if not self._log.reaches(threshold):
            self._next_size, self._next_try = threshold, 0.0
            self._make_room(connection)
            return
        if now < self._next_try and not self._log.reaches(self._next_size):
            return
        if not self._checkpoint(connection):
            self._next_size = 2 * self._log.size
            self._next_try = self._clock.monotonic() + _PATIENCE

    def close(self) -> None:
        self._log.close()

    def _make_room(self, connection: sqlite3.Connection) -> None:
        """Make a new log's file longer if it grows by small steps; if that cannot be, it grows on."""
        size = self._log.size
        step, self._last_size = size - self._last_size, size
        length = self._threshold + GROWN
        if not GROWN <= size < self._threshold or not 0 < step < GROWN or not self._log.has_room(length):
            return
        try:
            # Nobody else writes to the log while this connection may.
            with _waiting(connection, 0), connection:
                connection.execute("BEGIN IMMEDIATE")
                self._log.lengthen(length)
        except (sqlite3.Error, OSError):
            return

    def _checkpoint(self, connection: sqlite3.Connection) -> bool:
        """Whether the log was copied, and begins anew."""
        try:
            # Closing the file gives the lock back, whatever breaks in.
            with open(self._lock, "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self._copy(connection)
        except OSError:
            return False

    def _copy(self, connection: sqlite3.Connection) -> bool:
        how = "TRUNCATE" if self._log.size > _FAR_TOO_LONG * self._threshold else "RESTART"
        try:
            # Long enough to get the write lock between others' commits, short enough not to wait for a slow reader.
            with _waiting(connection, 250):
                busy, _, _ = connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
                if not busy:
                    connection.execute(statement("begin_log"))
        except sqlite3.Error:
            # What was committed is safe in the log; a later commit tries again.
            return False
        return not busy


def _share_of_disk(path: str) -> int:
    """How long the log may become on the disk of the file, in bytes."""
    try:
        disk = os.statvfs(os.path.dirname(path) or ".")
    except OSError:
        return THRESHOLD
    return max(_LEAST, disk.f_blocks * disk.f_frsize // _DISK_SHARE)


def open_lock_file(lock: str) -> int:
    """Open the file of a lock; it is made, private to its user, unless it is there; links are not followed."""
    try:
        return os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EngineUnreachable(
            f"The file {lock}, whose lock Perdure needs, cannot be made or opened ({error.strerror}).",
            "It must be a plain file that this user may read and write; it is empty, so it may be deleted when no"
            " program uses the store. Give this user the right to write to the directory as well.",
        ) from error


@contextlib.contextmanager
def _waiting(connection: sqlite3.Connection, milliseconds: int) -> Iterator[None]:
    """Have the connection wait no longer than that for others."""
    (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {milliseconds}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {before}")
