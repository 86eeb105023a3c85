"""The verbs that move jobs between waiting and running, and out of the store: promote, reap, prune, cancel."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import msgspec

from perdure.engines.renewal import to_renewal
from perdure.engines.set_aside import moment_or_none, readable
from perdure.engines.sqlite.notes import NOTES_AT_ONCE
from perdure.engines.sqlite.request import NOT_ANSWERED, NotAnswered
from perdure.engines.sqlite.rows import Row, from_duration, read_rows, to_job, to_moment
from perdure.engines.sqlite.sql import statement
from perdure.model.job import Job, JobId, WorkerId
from perdure.store.jobs import CancelAnswer, Promoted, Reaped
from perdure.store.workers import Renewal
from perdure.system.clock import from_microseconds, to_microseconds


def peek_promote(connection: sqlite3.Connection, now: int) -> Promoted | NotAnswered:
    """Nothing promoted, if nothing is due."""
    next_run_at = _next_run_at(connection)
    if next_run_at is not None and next_run_at <= now:
        return NOT_ANSWERED
    return Promoted(count=0, next_run_at=moment_or_none(partial(to_moment, next_run_at)), now=from_microseconds(now))


def promote(connection: sqlite3.Connection, now: int, limit: int) -> Promoted:
    count = connection.execute(statement("promote"), {"now": now, "limit": limit}).rowcount
    return Promoted(
        count=count,
        next_run_at=moment_or_none(partial(to_moment, _next_run_at(connection))),
        now=from_microseconds(now),
    )


def peek_reap(
    connection: sqlite3.Connection, now: int, limit: int, silent: Sequence[Renewal] | None
) -> Reaped | NotAnswered:
    """The running jobs without a living worker, if there is no worker to strike off."""
    if silent or (silent is None and connection.execute(statement("reap_peek"), {"now": now}).fetchone()):
        return NOT_ANSWERED
    found = _orphans(connection, now, (), limit)
    return NOT_ANSWERED if found is None else found


def reap(connection: sqlite3.Connection, now: int, limit: int, silent: Sequence[Renewal] | None) -> Reaped:
    if silent is None:
        struck = connection.execute(statement("reap_workers"), {"now": now}).fetchall()
    else:
        given = [(renewal.worker, to_microseconds(renewal.beat_at)) for renewal in silent]
        values = {"silent": msgspec.json.encode(given).decode()}
        struck = connection.execute(statement("reap_silent"), values).fetchall()
    workers = tuple(sorted(WorkerId(name) for (name,) in struck))
    while (found := _orphans(connection, now, workers, limit, sets_aside=True)) is None:
        pass  # what cannot be read was taken from its worker, so that the next look shows others
    return found


def prune(connection: sqlite3.Connection, now: int, older_than: timedelta, limit: int) -> int:
    parameters = {"ended_before": now - (from_duration(older_than) or 0), "limit": limit}
    pruned = connection.execute(statement("prune"), parameters).fetchall()
    connection.executemany(statement("prune_attempts"), pruned)
    connection.execute(statement("note_forget"), {"now": now, "limit": NOTES_AT_ONCE})
    return len(pruned)


def cancel(connection: sqlite3.Connection, now: int, ids: Sequence[JobId], reason: str) -> list[CancelAnswer]:
    return [_cancel(connection, now, job_id, reason) for job_id in ids]


def _next_run_at(connection: sqlite3.Connection) -> int | None:
    (run_at,) = connection.execute(statement("promote_next")).fetchone()
    return run_at if isinstance(run_at, int) else None


def _orphans(
    connection: sqlite3.Connection, now: int, workers: tuple[WorkerId, ...], limit: int, *, sets_aside: bool = False
) -> Reaped | None:
    """The jobs that run for no living worker; None where some cannot be read, which are set aside if asked for."""
    renewals = connection.execute(statement("reap_renewals"), {"now": now}).fetchall()
    (vanished,) = connection.execute(statement("reap_vanished")).fetchone()
    rows = read_rows(connection, statement("reap_jobs"), {"workers": vanished, "limit": limit})
    jobs: list[Job] = []
    unreadable: list[Row] = []
    for row in rows:
        job = readable("job", row[0], partial(to_job, row))
        if job is None:
            unreadable.append(row)
        else:
            jobs.append(job)
    if unreadable and sets_aside:
        values = [{"id": row[0], "worker": None, "now": now} for row in unreadable]
        connection.executemany(statement("set_aside"), values)
    if unreadable:
        return None
    return Reaped(workers=workers, jobs=tuple(jobs), renewals=tuple(to_renewal(*row) for row in renewals))


def _cancel(connection: sqlite3.Connection, now: int, job_id: JobId, reason: str) -> CancelAnswer:
    row = connection.execute(statement("cancel"), {"id": job_id, "reason": reason, "now": now}).fetchone()
    if row is not None:
        return "asked" if row[0] == "running" else "cancelled"
    found = connection.execute(statement("state"), {"id": job_id}).fetchone()
    if found is None:
        return "not found"
    return "already cancelled" if found[0] == "cancelled" else "already ended"
