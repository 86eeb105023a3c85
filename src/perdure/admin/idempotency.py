"""Requests that may be repeated: a key makes them known again, on any server and after a restart.

A note under the key is made first, with a fingerprint of the request and the ids that its jobs will have. Whoever
repeats the request finds the note and goes on with the same ids, so that nothing is made twice, wherever the first try
ended. The answer is written into the note, and is the answer from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from perdure.admin.replay import Rate, Replayed, replay
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.admin.schedules import add_schedule
from perdure.errors import InProgress, KeyReused, NotFound, RecordDamaged, Refused, UsageError
from perdure.model.job import JobId, NewJob
from perdure.model.schedule.definition import Definition
from perdure.store import Store
from perdure.store.audit import Fault
from perdure.store.notes import Note

N = TypeVar("N", bound=msgspec.Struct)

DAY = timedelta(days=1)
PATIENCE = timedelta(minutes=1)
"""A replay without an answer after this time was broken off, and may be taken up again."""

_MOST_NOTES = 10_000
"""How many notes of a kind are looked at for damage, the newest first."""
_ENQUEUE = "enqueue"
_REPLAY = "replay"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a request known again: its key, and what it asked for."""

    text: str
    fingerprint: str


class EnqueuedOnce(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a request, whether made now or before."""

    planned: tuple[JobId, ...]
    ids: tuple[JobId, ...]
    """What stands for each; another id than the planned one is the holder of its unique key."""
    is_repeated: bool = False


class ReplayRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A replay that was asked for, and what it did."""

    id: str
    request: dict[str, Any]
    fingerprint: str
    count: int | None = None
    """None until it is done."""
    matching: int | None = None
    is_failed: bool = False
    """It was refused and did nothing; the request may be made again."""


class RecordedReplay(msgspec.Struct, frozen=True, kw_only=True):
    """A replay's record and when it was asked for."""

    record: ReplayRecord
    at: datetime
    is_repeated: bool = False


class _EnqueueNote(msgspec.Struct, frozen=True, kw_only=True):
    fingerprint: str
    planned: tuple[JobId, ...]
    ids: tuple[JobId, ...] | None = None


@stepped
def enqueue_once(store: Store, jobs: Sequence[NewJob], key: Key, *, retention: timedelta) -> Steps[EnqueuedOnce]:
    """Make jobs durable, once for this key; a repeated request gets the first one's answer.

    Raises KeyReused when the key was used for another request. Known for a day, or as long as ended jobs are kept if
    that is shorter: a job that was pruned could not be told from one that was never made.
    """
    keep = min(DAY, retention)
    own = _EnqueueNote(fingerprint=key.fingerprint, planned=tuple(job.id for job in jobs))
    standing = yield from ask(store.note(_ENQUEUE, key.text, _encode(own), keep))
    found = _read(standing, _EnqueueNote)
    _check(found.fingerprint, key)
    is_repeated = found.planned != own.planned
    if found.ids is not None:
        return EnqueuedOnce(planned=found.planned, ids=found.ids, is_repeated=is_repeated)
    # [INV-20] The planned ids are those of whoever came first, so that doing it again makes no second job.
    same = [msgspec.structs.replace(job, id=planned) for job, planned in zip(jobs, found.planned, strict=True)]
    ids = tuple((yield from ask(store.enqueue(same))))
    done = msgspec.structs.replace(found, ids=ids)
    yield from ask(store.note(_ENQUEUE, key.text, _encode(done), keep, replaces=True))
    return EnqueuedOnce(planned=found.planned, ids=ids, is_repeated=is_repeated)


@stepped
def schedule_once(store: Store, definition: Definition, key: Key) -> Steps[EnqueuedOnce]:
    """Keep a schedule whose name was made for it, once for this key; its name stands where jobs have their ids.

    Raises KeyReused when the key was used for another request.
    """
    own = _EnqueueNote(fingerprint=key.fingerprint, planned=(JobId(definition.name),))
    standing = yield from ask(store.note(_ENQUEUE, key.text, _encode(own), DAY))
    found = _read(standing, _EnqueueNote)
    _check(found.fingerprint, key)
    if found.ids is None:
        [name] = found.planned
        yield from ask(add_schedule(store, msgspec.structs.replace(definition, name=name)))
        done = msgspec.structs.replace(found, ids=found.planned)
        # Without this a schedule that fires once, and is gone, would be made again.
        yield from ask(store.note(_ENQUEUE, key.text, _encode(done), DAY, replaces=True))
    return EnqueuedOnce(planned=found.planned, ids=found.planned, is_repeated=found.planned != own.planned)


@stepped
def replay_recorded(
    store: Store,
    replay_id: str,
    request: dict[str, Any],
    selection: tuple[Sequence[str], Mapping[str, Any]],
    *,
    rate: Rate | None,
    canary: int | None,
    key: Key | None,
    retention: timedelta,
) -> Steps[RecordedReplay]:
    """Put dead jobs back and keep a record of it; with a key once only.

    Raises KeyReused when the key was used for another request, InProgress while the first one is worked on.
    """
    keep = max(DAY, retention)
    text = replay_id if key is None else key.text
    own = ReplayRecord(id=replay_id, request=request, fingerprint="" if key is None else key.fingerprint)
    standing = yield from ask(store.note(_REPLAY, text, _encode(own), keep))
    found = _read(standing, ReplayRecord)
    ids, filters = selection
    if found.id != own.id:
        if key is not None:
            _check(found.fingerprint, key)
        if found.count is not None:
            return RecordedReplay(record=found, at=standing.made_at, is_repeated=True)
        if not found.is_failed:
            yield from _require_broken_off(store, standing)
        # What died since then was not meant.
        filters = {"before": standing.made_at, **filters} if not ids else filters
    try:
        done: Replayed = yield from ask(replay(store, ids, filters, rate=rate, canary=canary))
    except (UsageError, NotFound, Refused):
        failed = msgspec.structs.replace(found, is_failed=True)
        yield from ask(store.note(_REPLAY, text, _encode(failed), keep, replaces=True))
        raise
    record = msgspec.structs.replace(found, count=done.count, matching=done.matching, is_failed=False)
    yield from ask(store.note(_REPLAY, text, _encode(record), keep, replaces=True))
    return RecordedReplay(record=record, at=standing.made_at, is_repeated=found.id != own.id)


@stepped
def replays(store: Store, limit: int) -> Steps[list[RecordedReplay]]:
    """The replays that were recorded, newest first."""
    notes = yield from ask(store.notes(_REPLAY, limit))
    found = [(_readable(note), note.made_at) for note in notes]
    return [RecordedReplay(record=record, at=at) for record, at in found if record is not None and not record.is_failed]


def damaged_notes(store: Store) -> Steps[list[Fault]]:
    """The notes whose text cannot be read."""
    kinds: tuple[tuple[str, type[msgspec.Struct]], ...] = ((_ENQUEUE, _EnqueueNote), (_REPLAY, ReplayRecord))
    found: list[Fault] = []
    for kind, type_ in kinds:
        for note in (yield from ask(store.notes(kind, _MOST_NOTES))):
            try:
                msgspec.json.decode(note.body, type=type_)
            except msgspec.MsgspecError as error:
                found.append(Fault(kind="note", name=f"{kind}:{note.key}", problem=f"it cannot be read: {error}"))
    return found


def _readable(note: Note) -> ReplayRecord | None:
    """The replay of a note; None where it cannot be read: one such note must not hide the others."""
    try:
        return msgspec.json.decode(note.body, type=ReplayRecord)
    except msgspec.MsgspecError:
        return None


def _read(standing: Note, kind: type[N]) -> N:
    try:
        return msgspec.json.decode(standing.body, type=kind)
    except msgspec.MsgspecError as error:
        raise RecordDamaged(
            f"What is remembered under this idempotency key cannot be read ({error}).",
            "It is left as it is and goes when its time is over; use another key.",
        ) from None


def _check(fingerprint: str, key: Key) -> None:
    if fingerprint != key.fingerprint:
        raise KeyReused(
            "This idempotency key was used for another request before.",
            "Use a new key for a new request; repeat a request with the same body.",
        )


def _require_broken_off(store: Store, standing: Note) -> Steps[None]:
    now = yield from ask(store.now())
    if now - standing.made_at < PATIENCE:
        raise InProgress("The first request with this key is still being worked on.", "Ask again in a moment.")


def _encode(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
