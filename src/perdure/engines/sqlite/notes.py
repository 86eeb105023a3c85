"""Notes: made once, found again, and gone when their time is over."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from perdure.engines.set_aside import damaged_note, each_readable, readable
from perdure.engines.sqlite.rows import Row, from_duration, read_rows
from perdure.engines.sqlite.sql import statement
from perdure.store.notes import Note
from perdure.system.clock import from_microseconds

NOTES_AT_ONCE = 100
"""How many expired notes are deleted in passing."""


def note(
    connection: sqlite3.Connection, now: int, kind: str, key: str, body: str, keep: timedelta, replaces: bool
) -> Note:
    connection.execute(statement("note_forget"), {"now": now, "limit": NOTES_AT_ONCE})
    values = {"kind": kind, "key": key, "body": body, "keep": from_duration(keep), "replaces": replaces, "now": now}
    connection.execute(statement("note"), values)
    row: Row = connection.execute(statement("note_standing"), {"kind": kind, "key": key}).fetchone()
    found = readable("note", f"{kind}:{key}", lambda: _to_note(row))
    if found is None:
        raise damaged_note(kind, key)
    return found


def notes(connection: sqlite3.Connection, now: int, kind: str, limit: int) -> list[Note]:
    values = {"kind": kind, "now": now, "limit": max(0, limit)}
    rows = read_rows(connection, statement("notes"), values)
    return each_readable("note", rows, lambda row: f"{row[0]}:{row[1]}", _to_note)


def all_notes(connection: sqlite3.Connection) -> list[Note]:
    """Every note that can be read."""
    rows = read_rows(connection, statement("audit_notes"))
    return each_readable("note", rows, lambda row: f"{row[0]}:{row[1]}", _to_note)


def _to_note(row: Row) -> Note:
    if not isinstance(row[2], str):
        raise TypeError("its body is no text")
    return Note(kind=row[0], key=row[1], body=row[2], made_at=from_microseconds(row[3]))
