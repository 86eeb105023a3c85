"""Connections to a PostgreSQL server, for threads and for event loops, with a deadline for everything asked of them.

Most keep nothing in the server's session: no prepared statements, no settings, no locks beyond a transaction. So it
does not matter whether a pooler in transaction mode stands between. Statements are planned anew each time, with the
values given: a plan made for an empty table would otherwise outlive its table's growth. Planning takes longer than many
a small statement, so those of the hot path have connections of their own, which keep plans: where the session is this
client's alone, and after session.sql has seen to it that no plan can be made that a table outgrows.
"""

from __future__ import annotations

import select
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncRawCursor, RawCursor, pq

from perdure.clock import SystemClock
from perdure.engines.postgres.address import Address
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError
from perdure.engines.postgres.sql import statement

R = TypeVar("R")

_CLOCK = SystemClock()
_LOOK_EVERY = 0.1
_NOTHING_READY = 0
_AT_ONCE = 0
"""A statement is prepared when it is sent for the first time."""


class ThreadConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection for threads, used by one at a time."""

    deadline = float("inf")
    """When to give up what is being asked, on the clock that never jumps."""
    idle_since = 0.0
    is_for_plans = False
    """Whether it is meant for statements whose plans are kept; it keeps them unless a pooler stands between."""

    def wait(self, gen: Any, interval: float = _LOOK_EVERY, *args: Any, **options: Any) -> Any:
        return super().wait(_bounded(gen, self.deadline), interval, *args, **options)


class LoopConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection for one event loop."""

    deadline = float("inf")
    idle_since = 0.0
    is_for_plans = False

    async def wait(self, gen: Any, interval: float = _LOOK_EVERY, *args: Any, **options: Any) -> Any:
        return await super().wait(_bounded(gen, self.deadline), interval, *args, **options)


AnyConnection = ThreadConnection | LoopConnection


def connect(address: Address, *, is_for_plans: bool = False) -> ThreadConnection:
    """A connection for threads; raises NoConnectionError."""
    try:
        connection = ThreadConnection.connect(autocommit=True, prepare_threshold=None, **address.driver)
    except (psycopg.Error, OSError) as error:
        raise NoConnectionError from error
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    if is_for_plans:
        try:
            row = RawCursor(connection).execute(*_session(address, connection)).fetchone()
        except BaseException as error:
            shut(connection)
            if isinstance(error, psycopg.Error | OSError):
                raise NoConnectionError from error
            raise
        connection.prepare_threshold = _AT_ONCE if row and row[0] else None
    return connection


async def connect_on_loop(address: Address, *, is_for_plans: bool = False) -> LoopConnection:
    """A connection for the running event loop; raises NoConnectionError."""
    try:
        connection = await LoopConnection.connect(autocommit=True, prepare_threshold=None, **address.driver)
    except (psycopg.Error, OSError) as error:
        raise NoConnectionError from error
    await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
    if is_for_plans:
        try:
            cursor = await AsyncRawCursor(connection).execute(*_session(address, connection))
            row = await cursor.fetchone()
        except BaseException as error:
            shut(connection)
            if isinstance(error, psycopg.Error | OSError):
                raise NoConnectionError from error
            raise
        connection.prepare_threshold = _AT_ONCE if row and row[0] else None
    return connection


def is_usable(connection: AnyConnection) -> bool:
    """Whether an idle connection is still there: the server says nothing to one, unless it is about to end it."""
    inner = connection.pgconn
    if inner.status != pq.ConnStatus.OK or inner.transaction_status != pq.TransactionStatus.IDLE:
        return False
    poll = select.poll()
    poll.register(inner.socket, select.POLLIN)
    if not poll.poll(0):
        return True
    try:
        inner.consume_input()
    except psycopg.Error:
        return False
    return inner.status == pq.ConnStatus.OK and not poll.poll(0)


def shut(connection: AnyConnection) -> None:
    """Close a connection at once, from any thread, whatever it was doing."""
    connection.pgconn.finish()


def _session(address: Address, connection: AnyConnection) -> tuple[str, list[Any]]:
    """What makes a new connection keep plans; it has as long as any call."""
    connection.is_for_plans = True
    connection.deadline = _CLOCK.monotonic() + address.timeout
    found = statement("session", address.schema)
    return found.text, found.values({"pid": str(connection.info.backend_pid)})


def _bounded(gen: Generator[Any, Any, R], deadline: float) -> Generator[Any, Any, R]:
    """What the driver waits for, until the deadline."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready == _NOTHING_READY and _CLOCK.monotonic() > deadline:
                gen.close()
                raise TookTooLongError("no answer within the time limit")
            wanted = gen.send(ready)
    except StopIteration as done:
        result: R = done.value
        return result
