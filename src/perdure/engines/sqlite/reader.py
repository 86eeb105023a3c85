"""The readers: a few threads, each with a connection that cannot write, so that reads never wait for the writer.

Threads start with the first read. Each read is one short transaction, hence one consistent picture. `close()` lets
them finish what was asked before.
"""

from __future__ import annotations

import queue
import sqlite3
import threading

from perdure.engines.open_guard import OpenGuard
from perdure.engines.sqlite.connection import connect_reader, roll_back
from perdure.engines.sqlite.fault import to_perdure_error
from perdure.engines.sqlite.file_check import FileCheck
from perdure.engines.sqlite.fork import suspend_at_fork
from perdure.engines.sqlite.request import AnyRequest, deliver
from perdure.system.clock import Clock

THREADS = 2


class Readers:
    """The pool of reading threads."""

    is_immediate = False

    def __init__(self, path: str, clock: Clock, open_guard: OpenGuard, files: FileCheck) -> None:
        self._path = path
        self._open_guard = open_guard
        self._clock = clock
        self._files = files
        self._queue: queue.SimpleQueue[AnyRequest | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, request: AnyRequest) -> None:
        with self._open_guard.lock:
            self._open_guard.check()
            if not self._threads:
                self._start()
            self._queue.put(request)

    def do(self, request: AnyRequest) -> bool:
        # A reading caller would need a connection of its own.
        return False

    def close(self) -> None:
        """Finish the submitted requests, then close the connections. New requests are already refused."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        for number in range(THREADS):
            thread = threading.Thread(target=self._run, name=f"perdure-sqlite-reader-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _run(self) -> None:
        reader = _Reader(self._path, self._files)
        suspend_at_fork(reader)
        while (request := self._queue.get()) is not None:
            if request.is_abandoned:
                continue
            try:
                self._files.now_and_then()
                with reader.lock:
                    self._read(reader.connected(), request)
            except Exception as error:
                request.fail(to_perdure_error(self._files.explain(error), self._path))
            deliver([request])
        with reader.lock:
            reader.suspend()

    def _read(self, connection: sqlite3.Connection, request: AnyRequest) -> None:
        connection.execute("BEGIN")
        try:
            request.answer(request.work(connection, self._clock.microseconds()))
        finally:
            roll_back(connection)


class _Reader:
    """The connection of one thread, which is closed while the process forks."""

    def __init__(self, path: str, files: FileCheck) -> None:
        self._path = path
        self._files = files
        self.lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            # At once, and not with the first request of this thread: there may be no descriptor left by then.
            with self.lock:
                self.connected()
        except Exception:
            pass  # tried again for each request, which is told why it fails

    def connected(self) -> sqlite3.Connection:
        """The connection; the lock is held."""
        if self._connection is None:
            # To open another database beside the index of this one would cut that index short, which ends the process.
            self._files.before_open()
            self._connection = connect_reader(self._path)
        return self._connection

    def lock_for_fork(self) -> threading.Lock | None:
        return self.lock

    def suspend(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
