"""Notes: made once, found again, and gone when their time is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from perdure.engines.postgres.rows import from_duration, from_text, to_text
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.engines.set_aside import damaged_note, each_readable, readable
from perdure.store.notes import Note
from perdure.store.reply import Reply
from perdure.system.clock import from_microseconds

NOTES_AT_ONCE = 100
"""How many expired notes are deleted in passing."""


class NoteVerbs:
    """The verbs of notes, for the store."""

    _ask: Callable[[Verb[Any]], Reply[Any]]

    def note(self, kind: str, key: str, body: str, keep: timedelta, *, replaces: bool = False) -> Reply[Note]:
        return self._ask(note(kind, key, body, keep, replaces))

    def notes(self, kind: str, limit: int) -> Reply[list[Note]]:
        return self._ask(notes(kind, limit))


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
    found = readable("note", f"{kind}:{key}", lambda: _to_note(row))
    if found is None:
        raise damaged_note(kind, key)
    return found


def _notes(kind: str, limit: int) -> Script[list[Note]]:
    rows = yield Step("notes", {"kind": from_text(kind), "limit": max(0, limit)})
    return read(rows)


def read(rows: Sequence[Row]) -> list[Note]:
    """The notes of rows, without those that cannot be read."""
    return each_readable("note", rows, lambda row: f"{row[0]}:{row[1]}", _to_note)


def _to_note(row: Row) -> Note:
    return Note(kind=to_text(row[0]), key=to_text(row[1]), body=to_text(row[2]), made_at=from_microseconds(row[3]))
