"""Notes: made once, found again, and gone when their time is over."""

from __future__ import annotations

from datetime import timedelta

from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Call, Verb
from perdure.engines.set_aside import damaged_note, each_readable, readable
from perdure.store.notes import Note
from perdure.system.clock import from_microseconds

_LOOK_AT = 500


def note(kind: str, key: str, body: str, keep: timedelta, replaces: bool) -> Verb[Note]:
    arguments = (kind.encode(), key.encode(), body.encode(), from_duration(keep), int(replaces))
    made_at, standing = yield Call("note", arguments, is_write=True)
    found = readable("note", f"{kind}:{key}", lambda: _to_note(kind, key.encode(), made_at, standing))
    if found is None:
        raise damaged_note(kind, key)
    return found


def notes(kind: str, limit: int) -> Verb[list[Note]]:
    found: list[Note] = []
    passed = 0
    while len(found) < limit:
        looked_at, page = yield Call("notes", (kind.encode(), passed, _LOOK_AT))
        found += each_readable(
            "note", page, lambda one: b"%b:%b" % (kind.encode(), one[0]), lambda one: _to_note(kind, *one)
        )
        passed += looked_at
        if looked_at < _LOOK_AT:
            break
    return found[: max(0, limit)]


def _to_note(kind: str, key: bytes, made_at: bytes, body: bytes) -> Note:
    return Note(kind=kind, key=key.decode(), body=body.decode(), made_at=from_microseconds(int(made_at)))
