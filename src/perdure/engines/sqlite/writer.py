"""The writer: one connection, through which every change of an open store goes, and a thread beside it.

The thread waits for requests, takes all that have queued up, runs them in one transaction with one fsync, and answers
them together: group commit without timers, for what arrives while a commit is in flight is the next batch. If one
request of a batch fails, the batch is rolled back and each runs alone, so that nobody pays for another's fault. A
caller that would only wait, while nobody else asks for anything, takes the connection and does its own request: that
saves two changes of threads, and a program that only ever does so has no thread. `close()` lets the thread finish what
was asked before.
"""

from __future__ import annotations

import itertools
import queue
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perdure.engines.open_guard import OpenGuard
from perdure.engines.sqlite.checkpoint import Checkpointer
from perdure.engines.sqlite.connection import begin
from perdure.engines.sqlite.fault import is_busy, to_perdure_error
from perdure.engines.sqlite.file_check import FileCheck
from perdure.engines.sqlite.fork import suspend_at_fork
from perdure.engines.sqlite.request import NOT_ANSWERED, AnyRequest, Shared, Statement, deliver, own_error
from perdure.engines.sqlite.turnstile import Turnstile
from perdure.errors import EngineBusy
from perdure.system.clock import Clock

BATCH = 256
"""The most requests in one transaction."""


class Transactor:
    """Runs batches of requests on one connection; used by one thread at a time."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        where: str,
        clock: Clock,
        checkpointer: Checkpointer | None,
        turnstile: Turnstile | None = None,
        files: FileCheck | None = None,
        reopen: Callable[[], sqlite3.Connection] | None = None,
    ) -> None:
        self._connection = connection
        self._turnstile = turnstile
        self._leave_waiting_to_turnstile()
        self._where = where
        self._clock = clock
        self._checkpointer = checkpointer
        self._files = files
        self._reopen = reopen
        self._is_suspended = False
        self._rng = random.Random()
        self.commits = 0
        """How many write transactions were committed; shows what group commit saves."""

    def run(self, batch: Sequence[AnyRequest]) -> bool:
        """Do the requests, release their waiters, and see to the log; whether jobs may have become ready or due."""
        waiting = [request for request in batch if not request.is_abandoned]
        try:
            if self._is_suspended:
                self._resume()
            left = self._peek(waiting) if all(request.peek for request in waiting) else waiting
            if left:
                self._transact(left)
            if self._files is not None:
                # [INV-1] Nobody is answered by a file that the path does not lead to.
                check = self._files.after_commit if left else self._files.now_and_then
                check(self._connection)
        except BaseException as error:
            for request in waiting:
                request.fail(own_error(self._seen(error)))
            raise
        finally:
            deliver(waiting)
        if left and self._checkpointer is not None:
            self._checkpointer.after_commit(self._connection)
        return any(request.is_waking for request in left)

    def run_own(self, request: AnyRequest) -> bool:
        """The same for a request of the calling thread itself, alone: there is nobody to release."""
        if request.peek is not None:
            return self.run([request])
        work = request.work
        try:
            if self._is_suspended:
                self._resume()
            connection = self._connection
            # What is one statement is best not wrapped into two more: SQLite makes a transaction of it, and has it
            # durable when it returns. Nothing else goes by the time that it is given.
            single: Callable[[int], Statement | None] | None = getattr(work, "single", None)
            one = None if single is None else single(self._clock.microseconds())
            if one is not None:
                self._begin(one[0], one[1])
                request.answer(one[2])
            else:
                # [INV-1] As in _transact.
                with connection:
                    self._begin()
                    request.answer(work(connection, self._clock.microseconds()))
            if self._files is not None:
                self._files.after_commit(connection)
        except BaseException as error:
            request.fail(self._seen(error))
            if isinstance(error, Exception):
                return False
            raise
        self.commits += 1
        if self._checkpointer is not None:
            self._checkpointer.after_commit(self._connection)
        return request.is_waking

    def close(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
        if self._turnstile is not None:
            self._turnstile.close()
        self._connection.close()

    def suspend(self) -> None:
        """Close the connection until the next request, because the process forks."""
        if self._reopen is not None and not self._is_suspended:
            if self._files is not None:
                self._files.close()
            self.close()
            self._is_suspended = True

    def _resume(self) -> None:
        assert self._reopen is not None, "only then is it suspended"
        if self._files is None:
            self._connection = self._reopen()
        else:
            with self._files.opened_again():
                self._connection = self._reopen()
        if self._turnstile is not None:
            self._turnstile.open()
        self._leave_waiting_to_turnstile()
        self._is_suspended = False

    def _seen(self, error: BaseException) -> BaseException:
        """What the caller should see instead of the error."""
        if self._files is not None:
            error = self._files.explain(error, self._connection)
        return to_perdure_error(error, self._where)

    def _leave_waiting_to_turnstile(self) -> None:
        if self._turnstile is not None:
            # The turnstile waits for the write lock: SQLite would look for it too rarely.
            self._connection.execute("PRAGMA busy_timeout = 0")

    def _begin(self, first: str = "BEGIN IMMEDIATE", values: Sequence[Any] = ()) -> None:
        if self._turnstile is None:
            begin(self._connection, self._rng, first, values)
        else:
            self._turnstile.begin(self._connection, first, values)

    def _peek(self, requests: Sequence[AnyRequest]) -> list[AnyRequest]:
        """Answer by reading what can be; give back the rest."""
        left = []
        now = self._clock.microseconds()
        for request in requests:
            assert request.peek is not None
            try:
                found = request.peek(self._connection, now)
            except Exception as error:
                if isinstance(error, sqlite3.Error) and is_busy(error):
                    # Not even reading is possible for a moment; a transaction waits for that.
                    left.append(request)
                else:
                    request.fail(self._seen(error))
            else:
                if found is NOT_ANSWERED:
                    left.append(request)
                else:
                    request.answer(found)
        return left

    def _transact(self, requests: Sequence[AnyRequest]) -> None:
        is_begun = False
        try:
            # [INV-1] Nobody is answered before the transaction that holds their change is durable. The connection's own
            # `with` commits or undoes it, and no interrupt can come between: the file is never left locked.
            with self._connection:
                self._begin()
                is_begun = True
                # Read under the write lock, so that time never runs backwards from one transaction to the next.
                now = self._clock.microseconds()
                # Looked at again, for the lock may have taken long: what nobody waits for is best not begun.
                waiting = [request for request in requests if not request.is_abandoned]
                for alike in _alike(waiting) if len(waiting) != 1 else [waiting]:
                    self._do(alike, now)
        except Exception as error:
            if is_begun and len(requests) > 1:
                for request in requests:
                    self._transact([request])
            else:
                for request in requests:
                    request.fail(self._seen(error))
        else:
            self.commits += 1

    def _do(self, requests: Sequence[AnyRequest], now: int) -> None:
        """Do requests of one kind: together, where that kind of work can be shared."""
        first = requests[0].work
        if len(requests) > 1 and isinstance(first, Shared):
            answers = first.together([request.work for request in requests], self._connection, now)
        else:
            answers = [request.work(self._connection, now) for request in requests]
        for request, answer in zip(requests, answers, strict=True):
            request.answer(answer)


def _alike(requests: Sequence[AnyRequest]) -> Iterator[list[AnyRequest]]:
    """The requests in their order, neighbours of one kind of work together."""
    for _, neighbours in itertools.groupby(requests, key=lambda request: type(request.work)):
        yield list(neighbours)


class Writer:
    """A Transactor, its thread, and whose turn it is."""

    is_immediate = False

    def __init__(self, transactor: Transactor, open_guard: OpenGuard, hint: Callable[[], None]) -> None:
        self._transactor = transactor
        self._open_guard = open_guard
        self._hint = hint
        self._turn = threading.Lock()
        self._caller: int | None = None
        self._is_crowded = False
        self._queue: queue.SimpleQueue[AnyRequest | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        suspend_at_fork(self)

    def lock_for_fork(self) -> threading.Lock | None:
        return None if self._caller == threading.get_ident() else self._turn

    def suspend(self) -> None:
        self._transactor.suspend()

    def submit(self, request: AnyRequest) -> None:
        with self._open_guard.lock:
            self._open_guard.check()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="perdure-sqlite-writer", daemon=True)
                thread.start()
                self._thread = thread
            self._queue.put(request)

    def do(self, request: AnyRequest) -> bool:
        turn, own = self._turn, threading.get_ident()
        if turn.locked():
            if self._caller == own:
                raise EngineBusy(
                    "This thread is in the middle of another call to the store, which a signal handler broke in on.",
                    "Let the handler only take note of what it wants, and call the store after it.",
                )
            return False
        # Where there is company the thread has all of it in one transaction.
        if self._is_crowded or not self._queue.empty():
            return False
        with turn:
            # Who closes the connection waits for this turn.
            self._open_guard.check_unlocked()
            self._caller = own
            is_waking = self._transactor.run_own(request)
            self._caller = None
        if is_waking:
            self._hint()
        return True

    def close(self) -> None:
        """Finish the submitted requests, then close the connection. New requests are already refused."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        with self._turn:
            self._transactor.close()

    def _run(self) -> None:
        is_open = True
        while is_open:
            first = self._queue.get()
            try:
                with self._turn:
                    # Only now, for while others had their turn more may have come.
                    batch, is_open = self._take(first)
                    is_waking = self._transactor.run(batch)
                    self._is_crowded = len(batch) > 1
                if is_waking:
                    self._hint()
            except Exception:
                # The waiters have been told; the thread lives on for the next ones.
                continue

    def _take(self, request: AnyRequest | None) -> tuple[list[AnyRequest], bool]:
        """All that has queued up behind the first, and whether more may come."""
        batch = []
        while request is not None:
            batch.append(request)
            if len(batch) == BATCH:
                return batch, True
            try:
                request = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False


class Inline:
    """No thread: each request runs in the thread that asks, one at a time."""

    is_immediate = True

    def __init__(self, transactor: Transactor, open_guard: OpenGuard, hint: Callable[[], None]) -> None:
        self._transactor = transactor
        self._open_guard = open_guard
        self._hint = hint
        suspend_at_fork(self)

    def lock_for_fork(self) -> threading.Lock | None:
        return self._open_guard.lock

    def suspend(self) -> None:
        self._transactor.suspend()

    def submit(self, request: AnyRequest) -> None:
        with self._open_guard.lock:
            self._open_guard.check()
            is_waking = self._transactor.run([request])
        if is_waking:
            self._hint()

    def do(self, request: AnyRequest) -> bool:
        self.submit(request)
        return True

    def close(self) -> None:
        self._transactor.close()
