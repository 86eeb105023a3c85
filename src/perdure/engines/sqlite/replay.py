"""Puts ended jobs back, or dismisses them: retry, replay, discard."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import timedelta

from perdure.engines.sqlite.filter import filtered, parameters
from perdure.engines.sqlite.forwards import forget
from perdure.engines.sqlite.rows import from_duration
from perdure.engines.sqlite.sql import statement
from perdure.model.job import JobId
from perdure.model.state import states_before
from perdure.store.jobs import ReplayAnswer
from perdure.store.reads import JobFilter


def retry(connection: sqlite3.Connection, now: int, ids: Sequence[JobId]) -> list[ReplayAnswer]:
    """Make waiting, dead or cancelled jobs ready now."""
    return [_retry(connection, now, job_id) for job_id in ids]


def replay(connection: sqlite3.Connection, now: int, where: JobFilter, limit: int, every: timedelta) -> int:
    """Put matching dead jobs back, the first due now and each next one `every` later."""
    gap = from_duration(every) or 0

    def put_back(job_id: JobId, done: int) -> bool:
        return _put_back(connection, job_id, now, now + done * gap)

    return _for_each_dead(connection, where, limit, put_back)


def discard(connection: sqlite3.Connection, now: int, where: JobFilter, limit: int) -> int:
    """Dismiss matching dead jobs."""

    def dismiss(job_id: JobId, done: int) -> bool:
        forget(connection, job_id)
        return connection.execute(statement("discard"), {"id": job_id, "now": now}).rowcount == 1

    return _for_each_dead(connection, where, limit, dismiss)


def _retry(connection: sqlite3.Connection, now: int, job_id: JobId) -> ReplayAnswer:
    found = connection.execute(statement("state"), {"id": job_id}).fetchone()
    if found is None:
        return "not found"
    if found[0] not in states_before("retry"):
        return "wrong state"
    if found[0] == "waiting":
        connection.execute(statement("retry_waiting"), {"id": job_id, "now": now})
        return "replayed"
    return "replayed" if _put_back(connection, job_id, now, now) else "unique key busy"


def _put_back(connection: sqlite3.Connection, job_id: JobId, now: int, run_at: int) -> bool:
    """Whether the job was put back; only a unique key that is busy stands in the way."""
    values = {"id": job_id, "run_at": run_at, "state": "ready" if run_at <= now else "waiting"}
    if connection.execute(statement("replay"), values).rowcount == 0:
        return False
    forget(connection, job_id)
    return True


def _for_each_dead(
    connection: sqlite3.Connection, where: JobFilter, limit: int, act: Callable[[JobId, int], bool]
) -> int:
    """Act on matching dead jobs, oldest first, until it worked `limit` times; `act` is told how often it has."""
    done, above = 0, ""
    while done < limit:
        asked = limit - done
        values = parameters(where, above=above, limit=asked)
        page = connection.execute(filtered("replay_next", where), values).fetchall()
        for (job_id,) in page:
            done += act(job_id, done)
            above = job_id
        if len(page) < asked:
            break
    return done
