"""Hands many rows to one statement, so that a batch takes few calls into SQLite.

Each call lets other Python threads run, and waits for its turn again afterwards; beside a busy thread that costs
milliseconds a call, which a batch of hundreds must not pay row by row.
"""

from __future__ import annotations

import functools
import itertools
import sqlite3
from collections.abc import Iterator, Sequence

from perdure.engines.sqlite.rows import Row
from perdure.engines.sqlite.sql import statement

SIZES = (1000, 256, 64, 16, 4, 1)
"""How many rows the variants of a statement take; few, so that SQLite compiles each once."""


def execute_rows(
    cursor: sqlite3.Cursor, name: str, rows: Sequence[Row], shared: Row = (), filler: Row | None = None
) -> int:
    """Run a statement with `/*+ rows */` in it over all rows, in order; how many rows it changed.

    What is shared by all rows are the statement's first parameters. A filler is a row that changes nothing; with one,
    a few more rows than there are may be the cheaper way.
    """
    if len(rows) == 1:
        cursor.execute(one_row(name, len(rows[0])), [*shared, *rows[0]])
        return cursor.rowcount
    changed = 0
    for part in _parts(rows, filler):
        cursor.execute(_variant(name, len(part[0]), len(part)), [*shared, *itertools.chain.from_iterable(part)])
        changed += cursor.rowcount
    return changed


def one_row(name: str, width: int) -> str:
    """The statement for a single row of so many columns."""
    return _variant(name, width, 1)


def _parts(rows: Sequence[Row], filler: Row | None) -> Iterator[Sequence[Row]]:
    position = 0
    while position < len(rows):
        left = len(rows) - position
        size = next(size for size in SIZES if size <= left)
        larger = next((size for size in reversed(SIZES) if size >= left), left)
        if filler is not None and size < left and larger < 2 * left:
            yield [*rows[position:], *[filler] * (larger - left)]
            return
        yield rows[position : position + size]
        position += size


@functools.cache
def _variant(name: str, width: int, count: int) -> str:
    row = f"({', '.join('?' * width)})"
    return statement(name, rows=", ".join([row] * count))
