"""Hints that something may be ready: at once after commits of this process, by watching the file for others'.

Hints of this process are given by the thread that committed; those that come too close upon another are left to
the watcher. The watcher is a thread that starts with the first subscriber: every few milliseconds it asks SQLite
whether the file has changed, less often when nothing has happened lately, and if so whether there is anything to do.
It stops with `close()`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable

from perdure.clock import SystemClock
from perdure.engines.sqlite.connection import connect_reader
from perdure.engines.sqlite.sql import statement
from perdure.errors import PerdureError

GAP = 0.002
"""The shortest time between two hints, in seconds."""
_BUSY_POLL = 0.005
_IDLE_POLL = 0.025
_ACTIVE_FOR = 40
"""After so many polls without a change the watcher slows down."""

Wake = Callable[[], None]


class SqliteWakeups:
    """The source of hints of one open store; without a path there are no other processes, and no watcher."""

    def __init__(self, path: str | None) -> None:
        self._path = path
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
        connection: sqlite3.Connection | None = None
        version, seen, quiet = -1, None, 0
        while not self._is_closing.wait(_BUSY_POLL if quiet < _ACTIVE_FOR else _IDLE_POLL):
            quiet += 1
            try:
                if connection is None:
                    connection = connect_reader(path)
                (now_version,) = connection.execute("PRAGMA data_version").fetchone()
                if now_version != version:
                    version, quiet = now_version, 0
                    found = connection.execute(statement("hints")).fetchone()
                    self._is_owed = self._is_owed or bool(found[0]) or found != seen
                    seen = found
            except (sqlite3.Error, PerdureError):
                # Polling is the safety net; the writer reports what is wrong with the file.
                continue
            if self._is_owed:
                self._wake_all()
        if connection is not None:
            connection.close()
