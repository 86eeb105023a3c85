"""Hints that something may be ready: at once after commits of this process, by watching the file for others'.

Hints of this process are given by the thread that committed; those that come too close upon another are left to
the watcher. The watcher is a thread that starts with the first subscriber: when the operating system tells of a write
to the log, and every few milliseconds in any case, it asks SQLite whether the file has changed, less often when nothing
has happened lately, and if so whether there is anything to do. While there is a backlog it is in no hurry. It stops
with `close()`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable

from perdure.engines.sqlite.connection import connect_reader
from perdure.engines.sqlite.file_check import LOOK_EVERY, FileCheck
from perdure.engines.sqlite.fork import suspend_at_fork
from perdure.engines.sqlite.inotify import FileWatch
from perdure.engines.sqlite.sql import statement
from perdure.errors import EngineLost, PerdureError
from perdure.system.clock import SystemClock

GAP = 0.002
"""The shortest time between two hints, in seconds."""
_BUSY_POLL = 0.005
_IDLE_POLL = 0.025
_ACTIVE_FOR = 40
"""After so many polls without a change the watcher slows down."""
_SETTLED = 0.001
_LOOKS = 8
"""How often, and with which pauses, it looks whether a transaction that was seen to be written is complete."""

_OPEN_AGAIN = 0.5
"""How many seconds after a failed try the file is opened again."""

Wake = Callable[[], None]


class SqliteWakeups:
    """The source of hints of one open store; without a path there are no other processes, and no watcher."""

    def __init__(self, path: str | None, files: FileCheck | None = None) -> None:
        self._path = path
        self._files = files
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._subscribers: tuple[Wake, ...] = ()
        self._last_hint = float("-inf")
        self._is_owed = False
        self._is_closing = threading.Event()
        self._watcher: threading.Thread | None = None

    def subscribe(self, wake: Wake) -> Callable[[], None]:
        with self._lock:
            self._subscribers = (*self._subscribers, wake)
            if self._path is not None and self._watcher is None and not self._is_closing.is_set():
                self._watcher = threading.Thread(
                    target=self._watch, args=(self._path,), name="perdure-sqlite-watcher", daemon=True
                )
                self._watcher.start()

        def stop() -> None:
            with self._lock:
                self._subscribers = tuple(other for other in self._subscribers if other is not wake)

        return stop

    def hint(self) -> None:
        """Wake the subscribers, unless they were woken a moment ago: then the watcher does, a moment later."""
        if not self._subscribers:
            return
        if self._watcher is not None and self._clock.monotonic() - self._last_hint < GAP:
            self._is_owed = True
            return
        self._wake_all()

    def close(self) -> None:
        self._is_closing.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join()

    def _wake_all(self) -> None:
        self._last_hint = self._clock.monotonic()
        self._is_owed = False
        for wake in self._subscribers:
            try:
                wake()
            except Exception:
                # A subscriber whose loop is gone must not cost the others their hint; a hint may be lost.
                continue

    def _watch(self, path: str) -> None:
        watch = FileWatch(f"{path}-wal")
        look = _Look(path)
        suspend_at_fork(look)
        quiet = forks = 0
        while not self._is_closing.is_set():
            if forks != look.forks:
                # The log may be another file since.
                watch.close()
                watch, forks = FileWatch(f"{path}-wal"), look.forks
            if look.has_backlog:
                # Whoever works it off asks for more by itself, and every commit on the way would be seen here.
                self._is_closing.wait(_BUSY_POLL)
                watch.wait(0)
                was_written = False
            else:
                was_written = watch.wait(_BUSY_POLL if quiet < _ACTIVE_FOR else _IDLE_POLL)
            quiet += 1
            # A transaction is complete only some time after it was written: a little patience saves a whole poll.
            for _ in range(_LOOKS if was_written else 1):
                if was_written:
                    self._is_closing.wait(_SETTLED)
                with look.lock:
                    if look.has_changed():
                        quiet = 0
                        self._is_owed = self._is_owed or look.has_work()
                        break
            if self._is_owed or self._is_lost():
                self._wake_all()
        with look.lock:
            look.close()
        watch.close()

    def _is_lost(self) -> bool:
        """Whether the files were lost: then everybody is woken, a few times a second, to be told so by their calls."""
        if self._files is None or self._clock.monotonic() - self._last_hint < LOOK_EVERY:
            return False
        try:
            return self._files.now_and_then()
        except EngineLost:
            return True
        except OSError:
            pass  # no descriptor is left, or the directory cannot be read: the writer reports it
        return False


class _Look:
    """What the watcher sees in the file; whatever keeps it from seeing, polling is the safety net."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.lock = threading.Lock()
        """Held while the connection is used."""
        self.forks = 0
        """How often the connection was closed for a fork."""
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._seen: object = None
        self._clock = SystemClock()
        self._opens_at = float("-inf")
        self.has_backlog = False
        """Whether something was ready at the last look."""

    def has_changed(self) -> bool:
        """Whether anybody has changed the file since the last look."""
        try:
            if self._connection is None:
                if self._clock.monotonic() < self._opens_at:
                    return False
                self._connection = connect_reader(self._path)
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except (sqlite3.Error, PerdureError, MemoryError):
            # The writer reports what is wrong with the file.
            if self._connection is None:
                self._opens_at = self._clock.monotonic() + _OPEN_AGAIN
            return False
        is_new = bool(version != self._version)
        self._version = version
        return is_new

    def has_work(self) -> bool:
        """Whether something is ready, or stands otherwise than at the last look."""
        assert self._connection is not None, "it has just been looked at"
        try:
            found = self._connection.execute(statement("hints")).fetchone()
        except (sqlite3.Error, MemoryError):
            self._version = -1  # look again
            return False
        before, self._seen = self._seen, found
        self.has_backlog = bool(found[0])
        return self.has_backlog or found != before

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def lock_for_fork(self) -> threading.Lock | None:
        return self.lock

    def suspend(self) -> None:
        self.close()
        self._connection, self._version = None, -1
        self.forks += 1
