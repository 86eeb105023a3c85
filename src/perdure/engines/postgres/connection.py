"""Connections to a PostgreSQL server, for threads and for event loops, with a deadline for everything asked of them.

They keep nothing in the server's session: no prepared statements, no settings, no locks beyond a transaction. So it
does not matter whether a pooler in transaction mode stands between. Statements are planned anew each time, with the
values given: a plan made for an empty table would otherwise outlive its table's growth.
"""

from __future__ import annotations

import select
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg import pq

from perdure.clock import SystemClock
from perdure.engines.postgres.address import Address
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError

R = TypeVar("R")

_CLOCK = SystemClock()
_LOOK_EVERY = 0.1
_NOTHING_READY = 0


class ThreadConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection for threads, used by one at a time."""

    deadline = float("inf")
    """When to give up what is being asked, on the clock that never jumps."""
    idle_since = 0.0

    def wait(self, gen: Any, interval: float = _LOOK_EVERY, *args: Any, **options: Any) -> Any:
        return super().wait(_bounded(gen, self.deadline), interval, *args, **options)


class LoopConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection for one event loop."""

    deadline = float("inf")
    idle_since = 0.0

    async def wait(self, gen: Any, interval: float = _LOOK_EVERY, *args: Any, **options: Any) -> Any:
        return await super().wait(_bounded(gen, self.deadline), interval, *args, **options)


AnyConnection = ThreadConnection | LoopConnection


def connect(address: Address) -> ThreadConnection:
    """A connection for threads; raises NoConnectionError."""
    try:
        connection = ThreadConnection.connect(autocommit=True, prepare_threshold=None, **address.driver)
    except (psycopg.Error, OSError) as error:
        raise NoConnectionError from error
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


async def connect_on_loop(address: Address) -> LoopConnection:
    """A connection for the running event loop; raises NoConnectionError."""
    try:
        connection = await LoopConnection.connect(autocommit=True, prepare_threshold=None, **address.driver)
    except (psycopg.Error, OSError) as error:
        raise NoConnectionError from error
    await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
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
