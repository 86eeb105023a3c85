"""Writes what follows attempts, fenced by (job id, attempt, worker): a batch at once when every fence matches."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from perdure.clock import to_microseconds
from perdure.engines.sqlite.rows import Row, from_duration, from_failure
from perdure.engines.sqlite.sql import statement
from perdure.model.failure import Failure
from perdure.model.state import ENQUEUED
from perdure.store.jobs import Ended


def commit(connection: sqlite3.Connection, now: int, ended: Sequence[Ended]) -> list[bool]:
    """Write what follows; for each whether its fence matched."""
    if not ended:
        return []
    if len(ended) > 1:
        connection.execute("SAVEPOINT perdure_commit")
        is_whole = _commit_all(connection, now, ended)
        if not is_whole:
            connection.execute("ROLLBACK TO perdure_commit")
        connection.execute("RELEASE perdure_commit")
        if is_whole:
            return [True] * len(ended)
    # Some fence does not match; only one by one can tell which.
    return [_commit_all(connection, now, [one]) for one in ended]


def _commit_all(connection: sqlite3.Connection, now: int, ended: Sequence[Ended]) -> bool:
    """Write all; whether every fence matched."""
    succeeded = [one for one in ended if one.outcome.state == "succeeded"]
    if succeeded and not _changes_each(connection, "succeed", [_success(one, now) for one in succeeded]):
        return False
    if len(succeeded) == len(ended):
        return True
    others = [_what_follows(one, now) for one in ended if one.outcome.state != "succeeded"]
    return _changes_each(connection, "commit_attempt", others) and _changes_each(connection, "commit", others)


def _changes_each(
    connection: sqlite3.Connection, name: str, parameters: Sequence[Row] | Sequence[dict[str, Any]]
) -> bool:
    return connection.executemany(statement(name), parameters).rowcount == len(parameters)


def _success(one: Ended, now: int) -> Row:
    outcome = one.outcome
    return (
        now,
        to_microseconds(one.started_at),
        to_microseconds(one.ended_at),
        outcome.failures,
        outcome.recoveries,
        outcome.note,
        outcome.result,
        one.job_id,
        one.attempt,
        one.worker,
    )


def _what_follows(one: Ended, now: int) -> dict[str, Any]:
    outcome = one.outcome
    delay = from_duration(outcome.delay)
    return {
        "id": one.job_id,
        "attempt": one.attempt,
        "worker": one.worker,
        "outcome": outcome.attempt,
        "state": outcome.state,
        "lane": outcome.lane,
        "queue": outcome.queue,
        "run_at": now + (delay or 0) if outcome.state in ENQUEUED else None,
        "failures": outcome.failures,
        "recoveries": outcome.recoveries,
        "reason": outcome.reason,
        "error": from_failure(outcome.error),
        "delay": delay,
        "fingerprint": _fingerprint(one) if outcome.state == "dead" else None,
        "result": outcome.result,
        "started_at": to_microseconds(one.started_at),
        "ended_at": to_microseconds(one.ended_at),
        "now": now,
    }


def _fingerprint(one: Ended) -> str:
    """The error group of a dead job; jobs that died without an error are grouped by reason."""
    error = one.outcome.error or Failure(type=one.outcome.reason or "unknown", message="")
    return error.fingerprint(one.task)
