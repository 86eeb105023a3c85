"""Writes what follows attempts, fenced by (job id, attempt, worker): a whole batch in a handful of statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from perdure.engines.sqlite.batch import execute_rows
from perdure.engines.sqlite.enqueue import checked_cursor
from perdure.engines.sqlite.rows import Row, from_duration, from_failure, from_json_text
from perdure.engines.sqlite.sql import statement
from perdure.model.failure import Failure
from perdure.model.state import ENQUEUED
from perdure.store.jobs import Ended
from perdure.system.clock import to_microseconds

Fence = tuple[str, int, str]
_decode_places = msgspec.json.Decoder(list[int]).decode


def prepare(connection: sqlite3.Connection) -> None:
    """Make the connection's private table for batches; needed once, before the first commit."""
    connection.execute(statement("commit_table"))


def commit(
    connection: sqlite3.Connection, now: int, ended: Sequence[Ended], completed: Collection[Fence] = ()
) -> list[bool]:
    """Write what follows; for each whether its fence matched, or had been completed by its handler before."""
    cursor = connection.cursor()
    answers = [True] * len(ended) if _succeed(cursor, now, ended) else _commit(cursor, now, ended)
    if completed:
        for place, one in enumerate(ended):
            if not answers[place] and one.outcome.state == "succeeded" and fence(one) in completed:
                answers[place] = _is_completed(cursor, one)
    return answers


def complete_within(connection: object, path: str | None, now: int, ended: Ended) -> bool:
    """Write what follows one attempt in the caller's transaction, on the caller's connection to the store's file."""
    cursor = checked_cursor(connection, path)
    cursor.execute(statement("commit_table"))
    return _commit(cursor, now, [ended])[0]


def fence(one: Ended) -> Fence:
    """What must match for a commit to be accepted."""
    return (one.job_id, one.attempt, one.worker)


_NOBODY: Row = (None,) * 4
"""A success of no job, for commit_succeeded.sql."""


def _succeed(cursor: sqlite3.Cursor, now: int, ended: Sequence[Ended]) -> bool:
    """Write a batch of plain successes whose fences all match; otherwise nothing is changed."""
    if len({one.job_id for one in ended}) < len(ended):
        return False
    kinds: dict[Row, list[Row]] = {}
    for one in ended:
        what = one.outcome
        if what.state != "succeeded" or what.note is not None or what.queue is not None:
            return False
        result = None if what.result is None else from_json_text(what.result)
        row = (one.job_id, to_microseconds(one.started_at), to_microseconds(one.ended_at), result)
        # Nearly all are alike in these, so that they need not be told for each.
        kind = (one.attempt, one.worker, now, what.lane, what.failures, what.recoveries)
        kinds.setdefault(kind, []).append(row)
    cursor.execute("SAVEPOINT perdure_succeed")
    matched = sum(execute_rows(cursor, "commit_succeeded", rows, kind, _NOBODY) for kind, rows in kinds.items())
    if matched < len(ended):
        cursor.execute("ROLLBACK TO perdure_succeed")
    cursor.execute("RELEASE perdure_succeed")
    return matched == len(ended)


def _commit(cursor: sqlite3.Cursor, now: int, ended: Sequence[Ended]) -> list[bool]:
    cursor.execute(statement("commit_clear"))
    # Of one fence twice in a batch the first stands, as if they had come one after the other.
    firsts: dict[Fence, int] = {}
    for place, one in enumerate(ended):
        firsts.setdefault(fence(one), place)
    execute_rows(cursor, "commit_fences", [_row(place, ended[place], now) for place in firsts.values()])
    (places,) = cursor.execute(statement("commit_accepted")).fetchone()
    accepted = _decode_places(places)
    if any(ended[place].outcome.state != "succeeded" for place in accepted):
        cursor.execute(statement("commit_attempts"))
    if accepted:
        cursor.execute(statement("commit"), {"now": now})
    for place in accepted:
        if ended[place].outcome.sink is not None:
            # [INV-22] Due to its sink in the very step in which it dies.
            values = {"id": ended[place].job_id, "sink": ended[place].outcome.sink, "now": now}
            cursor.execute(statement("commit_forward"), values)
    answers = [False] * len(ended)
    for place in accepted:
        answers[place] = True
    return answers


def _is_completed(cursor: sqlite3.Cursor, one: Ended) -> bool:
    """Whether the attempt has made its job succeed; an attempt belongs to one worker, so it was this one's."""
    found = cursor.execute(statement("commit_recognised"), {"id": one.job_id, "attempt": one.attempt}).fetchone()
    return bool(found[0])


def _row(place: int, one: Ended, now: int) -> Row:
    """The parameters of commit_fences.sql."""
    outcome = one.outcome
    delay = from_duration(outcome.delay)
    return (
        place,
        one.job_id,
        one.attempt,
        one.worker,
        to_microseconds(one.started_at),
        to_microseconds(one.ended_at),
        outcome.attempt,
        outcome.state,
        outcome.lane,
        outcome.queue,
        now + (delay or 0) if outcome.state in ENQUEUED else None,
        delay,
        outcome.failures,
        outcome.recoveries,
        outcome.note if outcome.state == "succeeded" else outcome.reason,
        from_failure(outcome.error),
        _fingerprint(one) if outcome.state == "dead" else None,
        None if outcome.result is None else from_json_text(outcome.result),
    )


def _fingerprint(one: Ended) -> str:
    """The error group of a dead job; jobs that died without an error are grouped by reason."""
    error = one.outcome.error or Failure(type=one.outcome.reason or "unknown", message="")
    return error.fingerprint(one.task)
