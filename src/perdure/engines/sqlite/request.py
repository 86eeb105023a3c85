"""A verb on its way to a thread of the engine and back: what to do, who waits for it, and what came of it.

A request is a function of (connection, now) that may be run again after a roll-back. Who waits is a thread, blocked
on a lock, or an event loop's future; the answers of a batch reach each loop in one call.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from perdure.errors import PerdureError

T = TypeVar("T")

Work = Callable[[sqlite3.Connection, int], T]
"""Does a verb inside an open transaction; `now` is in microseconds."""

Statement = tuple[str, Sequence[Any], Any]
"""A statement that is all of a verb, its values, and the answer when it is done.

Work may have a method `single(now)` that gives one, or None where more is needed: SQLite makes a transaction of it.
"""


@runtime_checkable
class Shared(Protocol):
    """Work of a kind that neighbours in a batch can do together; it may be used alone like any other."""

    def __call__(self, connection: sqlite3.Connection, now: int) -> Any: ...

    def together(self, several: Sequence[Any], connection: sqlite3.Connection, now: int) -> list[Any]:
        """Do the work of several; the answer to each, in order."""
        ...


class NotAnswered:
    """What a peek gives when only a write transaction can answer."""


NOT_ANSWERED = NotAnswered()
Peek = Callable[[sqlite3.Connection, int], T | NotAnswered]
"""Tries to answer a verb by reading alone, so that idle polls take no lock."""


class Request(Generic[T]):
    """One use of a verb, and the reply to it; see store.reply.Reply."""

    # Of the class until they are set: most requests are answered where they are made, and set few of them.
    _result: T | None = None
    _error: BaseException | None = None
    _is_answered = False
    _done: threading.Lock | None = None
    _future: asyncio.Future[T] | None = None

    def __init__(
        self, where: Taker, work: Work[T], peek: Peek[T] | None = None, wakes: Callable[[T], bool] | None = None
    ) -> None:
        self._where = where
        self.work = work
        self.peek = peek
        self.wakes = wakes
        """Tells from the answer whether jobs may have become ready or due; None: never."""

    def wait(self) -> T:
        if not self._where.do(self):
            done = self.expect_in_thread()
            self._where.submit(self)
            done.acquire()
        if self._error is not None:
            raise self._error
        return cast("T", self._result)

    def __await__(self) -> Generator[Any, None, T]:
        if self._where.is_immediate:
            return self.wait()
        future = self.expect_on_loop()
        self._where.submit(self)
        return (yield from future)

    def expect_in_thread(self) -> threading.Lock:
        """Make a thread the waiter: the lock is released when the answer is there."""
        self._done = threading.Lock()
        self._done.acquire()
        return self._done

    def expect_on_loop(self) -> asyncio.Future[T]:
        """Make the running event loop the waiter."""
        self._future = asyncio.get_running_loop().create_future()
        return self._future

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        return None if self._future is None else self._future.get_loop()

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._future is not None and self._future.cancelled()

    @property
    def is_waking(self) -> bool:
        """Whether, as it was answered, jobs may have become ready or due."""
        return self.wakes is not None and self._is_answered and self.wakes(cast("T", self._result))

    def answer(self, result: T) -> None:
        self._result, self._error, self._is_answered = result, None, True

    def fail(self, error: BaseException) -> None:
        self._error, self._is_answered = error, False

    def release(self) -> None:
        """Let the waiter go on; for a future this must run on its loop."""
        if self._done is not None:
            self._done.release()
        elif self._future is not None and not self._future.done():
            if self._error is None:
                self._future.set_result(cast("T", self._result))
            else:
                self._future.set_exception(self._error)


AnyRequest = Request[Any]


class Taker(Protocol):
    """Where requests are done: the writer, the readers, or the calling thread."""

    is_immediate: bool
    """Whether a request is done when `submit` returns, so that nobody needs to wait."""

    def submit(self, request: AnyRequest) -> None:
        """Take the request; its waiter is released when it is done."""
        ...

    def do(self, request: AnyRequest) -> bool:
        """Do the request here and now, in the calling thread, if that is best; whether it was done."""
        ...


def deliver(requests: Sequence[AnyRequest]) -> None:
    """Release the waiters of answered requests: threads one by one, each event loop with a single call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[AnyRequest]] = {}
    for request in requests:
        loop = request.loop
        if loop is None:
            request.release()
        else:
            by_loop.setdefault(loop, []).append(request)
    for loop, waiting in by_loop.items():
        try:
            loop.call_soon_threadsafe(_release_all, waiting)
        except RuntimeError:
            # The loop was closed: its waiters are gone, and what they asked for is done.
            pass


def own_error(error: BaseException) -> BaseException:
    """An error of a waiter's own, where several get the same one: a raised exception gathers its raiser's frames."""
    if isinstance(error, PerdureError):
        copy = type(error)(error.message, error.hint)
        copy.__cause__ = error.__cause__
        return copy
    return error


def _release_all(requests: Sequence[AnyRequest]) -> None:
    for request in requests:
        request.release()
