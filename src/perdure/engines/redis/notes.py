"""Notes: made once, found again, and gone when their time is over."""

from __future__ import annotations

from datetime import timedelta

from perdure.clock import from_microseconds
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Call, Verb
from perdure.store.notes import Note

_LOOK_AT = 500


def note(kind: str, key: str, body: str, keep: timedelta, replaces: bool) -> Verb[Note]:
    arguments = (kind.encode(), key.encode(), body.encode(), from_duration(keep), int(replaces))
    made_at, standing = yield Call("note", arguments, is_write=True)
    return Note(kind=kind, key=key, body=standing.decode(), made_at=from_microseconds(int(made_at)))


def notes(kind: str, limit: int) -> Verb[list[Note]]:
    found: list[Note] = []
    passed = 0
    while len(found) < limit:
        looked_at, page = yield Call("notes", (kind.encode(), passed, _LOOK_AT))
        for key, made_at, body in page:
            moment = from_microseconds(int(made_at))
            found.append(Note(kind=kind, key=key.decode(), body=body.decode(), made_at=moment))
        passed += looked_at
        if looked_at < _LOOK_AT:
            break
    return found[: max(0, limit)]
