"""Writes what follows attempts, fenced by (job id, attempt, worker): a batch at once when every fence matches."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from perdure.clock import to_microseconds
from perdure.engines.sqlite.batch import execute_rows
from perdure.engines.sqlite.rows import Row, from_duration, from_failure, from_json_text
from perdure.model.failure import Failure
from perdure.model.state import ENQUEUED
from perdure.store.jobs import Ended


def commit(connection: sqlite3.Connection, now: int, ended: Sequence[Ended]) -> list[bool]:
    """Write what follows; for each whether its fence matched."""
    cursor = connection.cursor()
    if len(ended) > 1:
        cursor.execute("SAVEPOINT perdure_commit")
        is_whole = _commit_all(cursor, now, ended)
        if not is_whole:
            cursor.execute("ROLLBACK TO perdure_commit")
        cursor.execute("RELEASE perdure_commit")
        if is_whole:
            return [True] * len(ended)
    # Some fence does not match; only one by one can tell which.
    return [_commit_all(cursor, now, [one]) for one in ended]


def _commit_all(cursor: sqlite3.Cursor, now: int, ended: Sequence[Ended]) -> bool:
    """Write all; whether every fence matched."""
    succeeded = [_success(one, now) for one in ended if one.outcome.state == "succeeded"]
    if execute_rows(cursor, "succeed", succeeded) != len(succeeded):
        return False
    others = [one for one in ended if one.outcome.state != "succeeded"]
    if execute_rows(cursor, "commit_attempt", [_attempt(one) for one in others]) != len(others):
        return False
    return execute_rows(cursor, "commit", [_what_follows(one, now) for one in others]) == len(others)


def _success(one: Ended, now: int) -> Row:
    outcome = one.outcome
    return (
        one.job_id,
        one.attempt,
        one.worker,
        now,
        to_microseconds(one.started_at),
        to_microseconds(one.ended_at),
        outcome.failures,
        outcome.recoveries,
        outcome.note,
        None if outcome.result is None else from_json_text(outcome.result),
    )


def _attempt(one: Ended) -> Row:
    outcome = one.outcome
    return (
        one.job_id,
        one.attempt,
        one.worker,
        outcome.attempt,
        outcome.reason,
        from_failure(outcome.error),
        to_microseconds(one.started_at),
        to_microseconds(one.ended_at),
        from_duration(outcome.delay),
    )


def _what_follows(one: Ended, now: int) -> Row:
    outcome = one.outcome
    delay = from_duration(outcome.delay)
    return (
        one.job_id,
        one.attempt,
        one.worker,
        now,
        outcome.state,
        outcome.lane,
        outcome.queue,
        now + (delay or 0) if outcome.state in ENQUEUED else None,
        delay,
        outcome.failures,
        outcome.recoveries,
        outcome.reason,
        from_failure(outcome.error),
        _fingerprint(one) if outcome.state == "dead" else None,
        to_microseconds(one.started_at),
    )


def _fingerprint(one: Ended) -> str:
    """The error group of a dead job; jobs that died without an error are grouped by reason."""
    error = one.outcome.error or Failure(type=one.outcome.reason or "unknown", message="")
    return error.fingerprint(one.task)
