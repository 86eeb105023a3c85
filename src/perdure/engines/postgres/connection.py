"""Connections to a PostgreSQL server, for threads and for event loops, with a deadline for everything asked of them.

Most keep nothing in the server's session: no prepared statements, no settings, no locks beyond a transaction. So it
does not matter whether a pooler in transaction mode stands between. Statements are planned anew each time, with the
values given: a plan made for an empty table would otherwise outlive its table's growth. Planning takes longer than many
a small statement, so those of the hot path have connections of their own, which keep plans: where the session is this
client's alone, and after session.sql has seen to it that no plan can be made that a table outgrows.
"""

from __future__ import annotations

import asyncio
import functools
import select
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncRawCursor, RawCursor, pq

from perdure.engines.postgres.address import Address
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError
from perdure.engines.postgres.prepared_statements import READ, PreparedStatements
from perdure.engines.postgres.sql import Statement, statement
from perdure.engines.postgres.verb import Row
from perdure.system.clock import SystemClock

R = TypeVar("R")

_CLOCK = SystemClock()
_LOOK_EVERY = 0.1
_NOTHING_READY = 0
_ENCODING = "utf-8"
_CANCEL_WITHIN = 5.0
_LONGEST_WAIT = 3600.0
_OK, _IDLE = pq.ConnStatus.OK, pq.TransactionStatus.IDLE
_LATE = "no answer within the time limit"


class ThreadConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection for threads, used by one at a time."""

    deadline = float("inf")
    """When to give up what is being asked, on the clock that never jumps."""
    idle_since = 0.0
    is_for_plans = False
    """Whether it is meant for statements whose plans are kept."""
    plans: PreparedStatements | None = None
    """Where it keeps them; nowhere if a pooler stands between."""

    @functools.cached_property
    def read_poll(self) -> select.poll:
        """Tells whether the server has said something."""
        return _make_read_poll(self)

    def wait(self, gen: Any, interval: float = _LOOK_EVERY, *args: Any, **options: Any) -> Any:
        return super().wait(_bounded(gen, self.deadline), interval, *args, **options)

    def ask(self, plans: PreparedStatements, found: Statement, values: Sequence[Any]) -> list[Row]:
        """The rows of a statement whose plan is kept."""
        asking = plans.asking(found, values)
        try:
            wanted = next(asking)
            while True:
                self._wait_for(wanted)
                wanted = next(asking)
        except StopIteration as done:
            rows: list[Row] = done.value
            return rows
        except TookTooLongError:
            # Nothing more can be asked of it, not even to roll back.
            shut(self)
            raise
        except Exception:
            raise
        except BaseException:
            # Ctrl-C: the server is not to go on with what nobody waits for.
            with suppress(Exception):
                self.cancel_safe(timeout=_CANCEL_WITHIN)
            shut(self)
            raise

    def _wait_for(self, wanted: int) -> None:
        if wanted == READ:
            self._listen(self.read_poll)
            while _is_unfinished(self):
                self._listen(self.read_poll)
        else:
            read_poll = select.poll()
            read_poll.register(self.pgconn.socket, wanted)
            self._listen(read_poll)

    def _listen(self, read_poll: select.poll) -> None:
        while not read_poll.poll(max(0.0, min(self.deadline - _CLOCK.monotonic(), _LONGEST_WAIT)) * 1000):
            if _CLOCK.monotonic() > self.deadline:
                raise TookTooLongError(_LATE)


class LoopConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection for one event loop."""

    deadline = float("inf")
    idle_since = 0.0
    is_for_plans = False
    plans: PreparedStatements | None = None

    @functools.cached_property
    def read_poll(self) -> select.poll:
        """Tells whether the server has said something."""
        return _make_read_poll(self)

    async def wait(self, gen: Any, interval: float = _LOOK_EVERY, *args: Any, **options: Any) -> Any:
        return await super().wait(_bounded(gen, self.deadline), interval, *args, **options)

    async def ask(self, plans: PreparedStatements, found: Statement, values: Sequence[Any]) -> list[Row]:
        """The rows of a statement whose plan is kept."""
        asking = plans.asking(found, values)
        try:
            wanted = next(asking)
            while True:
                await self._wait_for(wanted)
                wanted = next(asking)
        except StopIteration as done:
            rows: list[Row] = done.value
            return rows
        except TookTooLongError:
            shut(self)
            raise
        except asyncio.CancelledError:
            with suppress(Exception):
                await self.cancel_safe(timeout=_CANCEL_WITHIN)
            shut(self)
            raise

    async def _wait_for(self, wanted: int) -> None:
        loop = asyncio.get_running_loop()
        come = loop.create_future()
        number = self.pgconn.socket
        left = min(max(0.0, self.deadline - _CLOCK.monotonic()), _LONGEST_WAIT)
        timer = loop.call_later(left, _settle, come, TookTooLongError(_LATE))
        if wanted == READ:
            # One wait for all readings of an answer: to go through the loop for each would take longer than to read.
            loop.add_reader(number, self._read, come)
        else:
            loop.add_reader(number, _settle, come)
            loop.add_writer(number, _settle, come)
        try:
            await come
        finally:
            timer.cancel()
            loop.remove_reader(number)
            if wanted != READ:
                loop.remove_writer(number)

    def _read(self, come: asyncio.Future[None]) -> None:
        try:
            if _is_unfinished(self):
                return
        except psycopg.Error as error:
            _settle(come, error)
        else:
            _settle(come)


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
        _keep_plans(connection, row)
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
        _keep_plans(connection, row)
    return connection


def is_settled(connection: AnyConnection) -> bool:
    """Whether a connection is there and in the middle of nothing, as far as this side knows."""
    inner = connection.pgconn
    return inner.status == _OK and inner.transaction_status == _IDLE


def is_usable(connection: AnyConnection) -> bool:
    """Whether an idle connection is still there: the server says nothing to one, unless it is about to end it."""
    if not is_settled(connection):
        return False
    if not connection.read_poll.poll(0):
        return True
    try:
        connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return is_settled(connection) and not connection.read_poll.poll(0)


def shut(connection: AnyConnection) -> None:
    """Close a connection at once, from any thread, whatever it was doing."""
    connection.pgconn.finish()


def _session(address: Address, connection: AnyConnection) -> tuple[str, list[Any]]:
    """What makes a new connection keep plans; it has as long as any call."""
    connection.is_for_plans = True
    connection.deadline = _CLOCK.monotonic() + address.timeout
    found = statement("session", address.schema)
    return found.text, found.values({"pid": str(connection.info.backend_pid)})


def _keep_plans(connection: AnyConnection, row: Row | None) -> None:
    """Have a connection keep plans if session.sql says that its session may; texts travel in one encoding only."""
    if row and row[0] and connection.info.encoding == _ENCODING:
        connection.plans = PreparedStatements(connection)


def _make_read_poll(connection: AnyConnection) -> select.poll:
    read_poll = select.poll()
    read_poll.register(connection.pgconn.socket, READ)
    return read_poll


def _is_unfinished(connection: AnyConnection) -> bool:
    """Read what has come; whether more of the answer is to come."""
    connection.pgconn.consume_input()
    return bool(connection.pgconn.is_busy())


def _settle(come: asyncio.Future[None], error: Exception | None = None) -> None:
    if come.done():
        return
    if error is None:
        come.set_result(None)
    else:
        come.set_exception(error)


def _bounded(gen: Generator[Any, Any, R], deadline: float) -> Generator[Any, Any, R]:
    """What the driver waits for, until the deadline."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready == _NOTHING_READY and _CLOCK.monotonic() > deadline:
                gen.close()
                raise TookTooLongError(_LATE)
            wanted = gen.send(ready)
    except StopIteration as done:
        result: R = done.value
        return result
