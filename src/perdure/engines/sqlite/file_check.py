"""Notices when the files of an open store are deleted, replaced or truncated; SQLite goes on with what it opened.

A connection keeps the files that it has opened, wherever their paths lead later. So the device and inode of each path
are compared with those that were opened: after every group of commits, before anybody is told about them, and about
four times a second while nothing is written.

After a commit, the directory is looked at first: as long as its time of modification is the same, no file in it was
deleted, renamed or replaced. That is one `stat`, and not of the log: after a `stat` of a file, Linux stores a new time
with the next write to it, which made a commit slower by a fifth.

The database's file is never opened here: closing any descriptor of it would drop the locks that SQLite holds on it. The
log has no locks of its own, so it may be opened and closed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator

from perdure.engines.sqlite.fault import is_busy, primary_code
from perdure.engines.sqlite.log import MAGIC
from perdure.errors import EngineError, EngineLost
from perdure.system.clock import SystemClock
from perdure.system.exhaustion import is_exhaustion

LOOK_EVERY = 0.25
"""The fewest seconds between two looks while nothing is written."""
_TICK = 50_000
"""In microseconds, more than the coarsest clock of a file system: earlier times of modification are not given again."""
_SMALLEST = 512
"""The size in bytes of the smallest page: no database is shorter."""
_UNREADABLE = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
"""What SQLite says when a page is not where it should be."""
_HINT = (
    "Stop all programs that use the store. Put its files back, or restore a backup, and start the programs again. The"
    " change that was asked for may or may not be in the file that was open."
)

_Directory = tuple[int, int, int]
"""The device, inode and time of modification of a directory."""


class FileCheck:
    """The files of one open store. Each check raises EngineLost; any thread may make it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._log, self._index = f"{path}-wal", f"{path}-shm"
        self._clock = SystemClock()
        self._directory = os.path.dirname(path)
        self._known_directory: _Directory | None = None
        """As it was before a check that found all files in place; None where that cannot be relied on."""
        found = os.stat(path)
        self._size = found.st_size
        self._identities = {path: (found.st_dev, found.st_ino)}
        self._next_look = 0.0
        self._is_closed = False
        self._find_others()

    @contextlib.contextmanager
    def opened_again(self) -> Iterator[None]:
        """Inside, the connection is opened again after it was closed for a fork, at which SQLite may delete the log."""
        self._check_identity(self._path)
        yield
        self._find_others()
        self._is_closed = False

    def close(self) -> None:
        """Check nothing until the connection is opened again."""
        self._is_closed = True

    def _find_others(self) -> None:
        for beside in (self._log, self._index):
            # SQLite makes both with the first transaction, which the opener has made.
            found = os.stat(beside)
            self._identities[beside] = found.st_dev, found.st_ino

    def before_open(self) -> None:
        """Check that the path leads to the file of the store, before one more connection opens it."""
        self._check_identity(self._path)

    def after_commit(self, connection: sqlite3.Connection) -> None:
        """Check that what was just written is in the files at their paths."""
        directory = self._look_at_directory()
        if directory is not None and directory == self._known_directory and self._clock.monotonic() < self._next_look:
            return
        self._check_main(connection)
        self._check_identity(self._log)
        self._look()
        self._known_directory = directory

    def now_and_then(self, connection: sqlite3.Connection | None = None) -> bool:
        """Check all files, unless that was done a moment ago; whether a check with a connection is needed as well."""
        if self._is_closed or self._clock.monotonic() < self._next_look:
            return False
        is_doubtful = self._check_main(connection)
        self._check_identity(self._log)
        if not is_doubtful:
            self._look()
        return is_doubtful

    def explain(self, error: BaseException, connection: sqlite3.Connection | None = None) -> BaseException:
        """The loss of a file that explains an error of SQLite; without one, the error itself."""
        cause = error.__cause__ if isinstance(error, EngineError) else error
        if not isinstance(cause, sqlite3.Error) or is_busy(cause):
            return error
        self._next_look = 0.0
        try:
            self.now_and_then(connection)
            if primary_code(cause) in _UNREADABLE and not self._check_identity(self._log):
                # An empty log that SQLite itself has emptied can be read.
                raise self._lost("truncated", self._log)
        except EngineLost as lost:
            lost.__cause__ = cause
            return lost
        except OSError:
            pass  # the error is told as it is
        return error

    def _look_at_directory(self) -> _Directory | None:
        """The directory as it is now, or None if a later change might not show in it."""
        try:
            found = os.stat(self._directory)
        except OSError:
            return None  # the check of the files tells what happened
        is_settled = found.st_mtime_ns // 1000 < self._clock.microseconds() - _TICK
        return (found.st_dev, found.st_ino, found.st_mtime_ns) if is_settled else None

    def _look(self) -> None:
        now = self._clock.monotonic()
        if now < self._next_look:
            return
        self._check_identity(self._index)
        self._check_log()
        # Set last, so that a look that fails is made again by the next caller.
        self._next_look = now + LOOK_EVERY

    def _check_main(self, connection: sqlite3.Connection | None) -> bool:
        """Whether the file is shorter than before and only a connection can tell why."""
        size = self._check_identity(self._path)
        if size < _SMALLEST:
            raise self._lost("truncated")
        if size < self._size:
            if connection is None:
                return True
            # The file is shorter after a VACUUM too, and then it has fewer pages by SQLite's own count.
            if _counted(connection) >= self._size:
                raise self._lost("truncated")
        self._size = size
        return False

    def _check_identity(self, path: str) -> int:
        """The size of the file at a path, which is the one that was opened."""
        try:
            found = os.stat(path)
        except OSError as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                raise
            raise self._lost("deleted", path) from error
        if (found.st_dev, found.st_ino) != self._identities[path]:
            raise self._lost("replaced by another file", path)
        return found.st_size

    def _check_log(self) -> None:
        """Check that the log has its beginning: after a truncation there are zeros, or later frames only."""
        try:
            file = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if is_exhaustion(error):
                return  # no descriptor is left for the moment, which says nothing about the file
            raise
        try:
            beginning = os.pread(file, 4, 0)
        finally:
            os.close(file)
        if beginning and beginning not in MAGIC:
            raise self._lost("truncated", self._log)

    def _lost(self, how: str, path: str | None = None) -> EngineLost:
        what = f"The SQLite file {self._path}" if path in (None, self._path) else f"The file {path}"
        return EngineLost(f"{what} was {how} while the store was open.", _HINT)


def _counted(connection: sqlite3.Connection) -> float:
    """How many bytes the database has by SQLite's own count; more than any file when it cannot count them any more."""
    try:
        (pages,), (size,) = (connection.execute(f"PRAGMA page_{what}").fetchone() for what in ("count", "size"))
    except sqlite3.Error:
        return float("inf")
    return float(pages * size)
