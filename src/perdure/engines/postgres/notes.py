"""Notes: made once, found again, and gone when their time is over."""

from __future__ import annotations

from datetime import timedelta

from perdure.clock import from_microseconds
from perdure.engines.postgres.rows import from_duration, from_text, to_text
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.store.notes import Note

NOTES_AT_ONCE = 100
"""How many expired notes are deleted in passing."""


def note(kind: str, key: str, body: str, keep: timedelta, replaces: bool) -> Verb[Note]:
    return Verb(lambda: _note(kind, key, body, keep, replaces), is_transaction=True, is_repeatable=True)


def notes(kind: str, limit: int) -> Verb[list[Note]]:
    return Verb(lambda: _notes(kind, limit), is_repeatable=True)


def _note(kind: str, key: str, body: str, keep: timedelta, replaces: bool) -> Script[Note]:
    yield Step("note_forget", {"limit": NOTES_AT_ONCE})
    place = {"kind": from_text(kind), "key": from_text(key)}
    rest = {"body": from_text(body), "keep": from_duration(keep), "replaces": replaces}
    yield Step("note", {**place, **rest})
    (row,) = yield Step("note_standing", place)
    return _to_note(row)


def _notes(kind: str, limit: int) -> Script[list[Note]]:
    rows = yield Step("notes", {"kind": from_text(kind), "limit": max(0, limit)})
    return [_to_note(row) for row in rows]


def _to_note(row: Row) -> Note:
    return Note(kind=to_text(row[0]), key=to_text(row[1]), body=to_text(row[2]), made_at=from_microseconds(row[3]))
