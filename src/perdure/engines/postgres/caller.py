"""Plays a script on a caller's own connection, inside the caller's transaction, whatever driver it belongs to.

Known are psycopg (2 and 3), asyncpg, SQLAlchemy's connections and sessions, and Django's connections. They are told by
the module that they come from; none of them has to be installed. Nothing is begun, committed or changed on them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from perdure.engines.postgres.sql import Statement
from perdure.engines.postgres.verb import Row, Script, Step
from perdure.errors import Unsupported

T = TypeVar("T")

Prepare = Callable[[Step], tuple[Statement, list[Any]]]
Execute = Callable[[str, Sequence[Any]], list[Row]]

SUPPORTED = (
    "Give a connection of psycopg, asyncpg, SQLAlchemy (or one of its sessions) or Django that is open on the store's"
    " database."
)
_NUMBERED = re.compile(r"\$([0-9]+)")


def play_within(connection: Any, script: Script[T], prepare: Prepare) -> T:
    """Play a script on a connection that blocks."""
    execute = _blocking(connection)
    if execute is None:
        if _is_async(connection):
            raise Unsupported(
                f"A {_kind(connection)} can only be awaited.",
                "Use the verb that is awaited, as in enqueue_async().",
            )
        raise Unsupported(f"The PostgreSQL engine cannot enqueue through a {_kind(connection)}.", SUPPORTED)
    try:
        step = next(script)
        while True:
            found, values = prepare(step)
            step = script.send(execute(found.text, values))
    except StopIteration as done:
        result: T = done.value
        return result


async def play_within_async(connection: Any, script: Script[T], prepare: Prepare) -> T:
    """Play a script on a connection that is awaited, or on one that blocks."""
    if _is_from(connection, "sqlalchemy.ext.asyncio"):
        # Its own way to use what blocks: the driver below is awaited all the same.
        result: T = await connection.run_sync(lambda inner: play_within(inner, script, prepare))
        return result
    if not _is_async(connection):
        return play_within(connection, script, prepare)
    try:
        step = next(script)
        while True:
            found, values = prepare(step)
            if isinstance(connection, psycopg.AsyncConnection):
                cursor = psycopg.AsyncRawCursor(connection, row_factory=psycopg.rows.tuple_row)
                await cursor.execute(found.text, values)
                rows = await cursor.fetchall() if cursor.description else []
            else:
                rows = [tuple(record) for record in await connection.fetch(found.text, *values)]
            step = script.send(rows)
    except StopIteration as done:
        last: T = done.value
        return last


def _blocking(connection: Any) -> Execute | None:
    """How to execute on a connection that blocks; None for any other."""
    if isinstance(connection, psycopg.Connection):
        return lambda text, values: _psycopg(connection, text, values)
    if _is_from(connection, "sqlalchemy.orm") and hasattr(connection, "connection"):
        connection = connection.connection()
    if _is_from(connection, "sqlalchemy.engine"):
        return lambda text, values: _sqlalchemy(connection, text, values)
    is_django = _is_from(connection, "django") and getattr(connection, "vendor", None) == "postgresql"
    if is_django or _is_from(connection, "psycopg2"):
        return lambda text, values: _dbapi(connection, text, values)
    return None


def _psycopg(connection: psycopg.Connection[Any], text: str, values: Sequence[Any]) -> list[Row]:
    with psycopg.RawCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.execute(text, values)
        return cursor.fetchall() if cursor.description else []


def _sqlalchemy(connection: Any, text: str, values: Sequence[Any]) -> list[Row]:
    if connection.dialect.name != "postgresql":
        raise Unsupported(f"This connection is open on {connection.dialect.name}.", SUPPORTED)
    # In brackets, because SQLAlchemy takes `:name::type` for something else; numbers as texts, because it would give
    # them a type of its own choice, and the statement casts every parameter itself.
    clause = sys.modules["sqlalchemy"].text(_NUMBERED.sub(r"(:p\1)", text))
    given = {f"p{place}": _as_text(value) for place, value in enumerate(values, start=1)}
    return [tuple(row) for row in connection.execute(clause, given)]


def _dbapi(connection: Any, text: str, values: Sequence[Any]) -> list[Row]:
    given = {f"p{place}": value for place, value in enumerate(values, start=1)}
    with connection.cursor() as cursor:
        cursor.execute(_NUMBERED.sub(r"%(p\1)s", text), given)
        return list(cursor.fetchall()) if cursor.description else []


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) else value


def _is_async(connection: Any) -> bool:
    return isinstance(connection, psycopg.AsyncConnection) or any(
        _is_from(connection, module) for module in ("asyncpg", "sqlalchemy.ext.asyncio")
    )


def _is_from(connection: Any, module: str) -> bool:
    """Whether the connection's class, or one that it is made from, comes from a module."""
    return any(f"{kind.__module__}.".startswith(f"{module}.") for kind in type(connection).__mro__)


def _kind(connection: object) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"
