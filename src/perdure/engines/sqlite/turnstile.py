"""Lets the processes that write to one file take turns.

SQLite's write lock is not fair: a process that writes in a loop takes it again within microseconds, and other processes
look only every 100 ms whether it is free. So a process that finds the write lock taken also locks the file `-turn`
beside the database, and looks often. A process that writes looks at that file after `TRANSACTIONS` transactions or
`SECONDS` seconds: where another process waits, it gets in line behind it, and takes the write lock after it.

A process that is stopped while it waits must not stop the others: the lock of `-turn` is waited for only for `PATIENCE`
seconds, and the write lock decides in any case. Programs that write through connections of their own take no turns.
"""

from __future__ import annotations

import fcntl
import os
import random
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from perdure.engines.sqlite import connection as connections
from perdure.engines.sqlite.checkpoint import open_lock_file
from perdure.engines.sqlite.fault import is_busy
from perdure.system.clock import SystemClock

TRANSACTIONS = 16
SECONDS = 0.005
"""After so many transactions, or so many seconds, a process that writes looks whether another one waits."""
PATIENCE = 1.0
"""The longest wait for the processes that came before, in seconds; after that, this process waits beside them."""
FIRST_PAUSE, LONGEST_PAUSE = 0.0002, 0.005
"""Between these lies the time between two looks of a process that waits, in seconds. It grows with the wait."""


class Turnstile:
    """The turns of one process at the file; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}-turn"
        self.open()
        self._clock = SystemClock()
        self._rng = random.Random()
        self._left = TRANSACTIONS
        self._next_look = self._clock.monotonic() + SECONDS

    def begin(self, connection: sqlite3.Connection, first: str = "BEGIN IMMEDIATE", values: Sequence[Any] = ()) -> None:
        """Take the write lock with the first statement, in turn with other processes; raises SQLite's busy error.

        The connection must not wait for locks by itself.
        """
        self._left -= 1
        now = self._clock.monotonic()
        if (self._left > 0 and now < self._next_look) or self._is_alone(now):
            try:
                connection.execute(first, values)
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
            else:
                return
        self._wait(connection, first, values)

    def open(self) -> None:
        """Open the file of the lock; after `close`, open it again."""
        self._file = open_lock_file(self._path)

    def close(self) -> None:
        """Close the file; once more changes nothing, as its number may belong to another file by then."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _is_alone(self, now: float) -> bool:
        """Whether no other process waits."""
        self._left, self._next_look = TRANSACTIONS, now + SECONDS
        is_alone = self._lock()
        if is_alone:
            self._unlock()
        return is_alone

    def _wait(self, connection: sqlite3.Connection, first: str, values: Sequence[Any]) -> None:
        began = self._clock.monotonic()
        deadline = began + connections.BUSY_TIMEOUT * connections.CLAIM_TRIES
        has_turn = False
        try:
            while not has_turn and self._clock.monotonic() - began < PATIENCE:
                has_turn = self._lock()
                if not has_turn:
                    self._pause(began)
            while True:
                try:
                    connection.execute(first, values)
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or self._clock.monotonic() > deadline:
                        raise
                else:
                    return
                self._pause(began)
        finally:
            # Also where an interrupt came between the lock and the note of it.
            self._unlock()
            self._left, self._next_look = TRANSACTIONS, self._clock.monotonic() + SECONDS

    def _pause(self, began: float) -> None:
        waited = self._clock.monotonic() - began
        time.sleep(self._rng.uniform(0.5, 1.0) * min(LONGEST_PAUSE, max(FIRST_PAUSE, waited / 10)))

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)
