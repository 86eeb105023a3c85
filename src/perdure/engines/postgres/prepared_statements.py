"""Asks statements whose plans a session keeps, straight through libpq: no cursor stands between.

A call is one message and its answer. How it waits for the answer is its player's business: `asking` is a generator
that yields what to wait for and goes on when that has come: all of an answer, or room for more of the question. It
holds no lock; a connection is used by one at a time.
"""

from __future__ import annotations

import select
from collections.abc import Generator, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from perdure.engines.postgres.sql import Statement
from perdure.engines.postgres.verb import Row

READ = select.POLLIN
"""To wait until a whole answer has been read, which takes many readings where there are many rows."""
READ_OR_WRITE = select.POLLIN | select.POLLOUT
Asking = Generator[int, None, list[Row]]

_TUPLES = pq.ExecStatus.TUPLES_OK
_DONE = pq.ExecStatus.COMMAND_OK
_GOOD = (_TUPLES, _DONE)


class PreparedStatements:
    """The statements that one connection's session knows by name, and how they are asked."""

    def __init__(self, connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        self._inner = connection.pgconn
        self._names: dict[str, bytes] = {}
        self._known: set[str] = set()
        # Kept as the statements are: what it found out about their columns holds for the next rows.
        self._transformer = Transformer(connection)

    def __contains__(self, name: object) -> bool:
        """Whether the statement of that name has been prepared."""
        return name in self._known

    def asking(self, found: Statement, values: Sequence[Any]) -> Asking:
        """The rows of a statement, which is prepared when it is asked for the first time."""
        inner = self._inner
        name = self._names.get(found.text)
        if name is None:
            name = f"perdure_{len(self._names)}_{found.name}".encode()
            inner.send_prepare(name, found.text.encode())
            yield from self._answer()
            self._names[found.text] = name
            self._known.add(found.name)
        inner.send_query_prepared(name, list(map(_written, values)), found.formats, result_format=pq.Format.BINARY)
        return (yield from self._answer())

    def _answer(self) -> Asking:
        """Send what is to be sent, and read all of the answer."""
        inner = self._inner
        while inner.flush():
            yield READ_OR_WRITE
            inner.consume_input()
        results: list[pq.abc.PGresult] = []
        while True:
            if inner.is_busy():
                yield READ
            result = inner.get_result()
            if result is None:
                break
            results.append(result)
        if not results:
            raise psycopg.OperationalError("the server gave no answer")
        # A statement that gave its rows may still fail when it is made durable: then an error follows them.
        for result in results:
            if result.status not in _GOOD:
                raise psycopg.errors.error_from_result(result)
        return self._rows(results[0])

    def _rows(self, result: pq.abc.PGresult) -> list[Row]:
        if result.status == _DONE or not result.ntuples:
            return []
        transformer = self._transformer
        transformer.set_pgresult(result)
        try:
            return transformer.load_rows(0, result.ntuples, tuple)
        finally:
            transformer.set_pgresult(None)


def _written(value: Any) -> bytes | None:
    """A value as a parameter is sent; its type is the one that the statement gives it."""
    if isinstance(value, str):
        if "\0" in value:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, list | tuple):
        return f"{{{','.join(map(_quoted, value))}}}".encode()
    raise TypeError(f"no parameter of a statement is a {type(value).__name__}")


def _quoted(text: str) -> str:
    """A text as it stands in an array."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
