"""Claims ready jobs for a worker: lane by lane, in order, under its lease and within the cap on running retries."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from perdure.engines.sqlite.request import NOT_ANSWERED, NotAnswered
from perdure.engines.sqlite.rows import to_job
from perdure.engines.sqlite.sql import statement
from perdure.errors import LeaseLost
from perdure.model.job import Job, WorkerId
from perdure.model.state import Lane
from perdure.store.jobs import Want


def peek(
    connection: sqlite3.Connection, now: int, worker: WorkerId, wants: Sequence[Want], limit: int
) -> list[Job] | NotAnswered:
    """Nothing, if nothing is ready; so that an idle worker's polls take no lock."""
    _check_lease(connection, now, worker)
    if limit > 0:
        for want in wants:
            if connection.execute(statement("fetch_peek"), {"queue": want.queue}).fetchone():
                return NOT_ANSWERED
    return []


def fetch(connection: sqlite3.Connection, now: int, worker: WorkerId, wants: Sequence[Want], limit: int) -> list[Job]:
    """Claim up to `limit` jobs, going through the wants in their order."""
    _check_lease(connection, now, worker)
    paused = {name for (name,) in connection.execute(statement("fetch_paused"))}
    claimed: list[Job] = []
    for want in wants:
        room = limit - len(claimed)
        if room <= 0:
            break
        if want.queue not in paused:
            claimed += _fetch_want(connection, now, worker, want, room)
    return claimed


def _check_lease(connection: sqlite3.Connection, now: int, worker: WorkerId) -> None:
    if not connection.execute(statement("fetch_lease"), {"worker": worker, "now": now}).fetchone():
        raise LeaseLost(
            f"The lease of worker {worker} has run out, or it never registered.", "Register under a new id."
        )


def _fetch_want(connection: sqlite3.Connection, now: int, worker: WorkerId, want: Want, room: int) -> list[Job]:
    fresh, retry = _fit(want, room)
    room = min(room, fresh + retry)
    allowed = _retries_allowed(connection, want, room)

    def claim(lane: Lane, count: int) -> list[Job]:
        if count <= 0:
            return []
        parameters = {"worker": worker, "now": now, "queue": want.queue, "lane": lane, "limit": count}
        return [to_job(row) for row in connection.execute(statement("fetch"), parameters).fetchall()]

    retries = claim("retry", min(retry, allowed))
    # What the retry lane could not fill, for want of jobs or because of the cap, is room for fresh ones.
    fresh_jobs = claim("fresh", fresh if want.is_strict else room - len(retries))
    if not want.is_strict:
        left = room - len(retries) - len(fresh_jobs)
        retries += claim("retry", min(left, allowed - len(retries)))
    return sorted(retries + fresh_jobs, key=_rank)


def _fit(want: Want, room: int) -> tuple[int, int]:
    """How many fresh and retry jobs to ask for, both lanes cut alike when there is less room than wanted."""
    wanted = want.fresh + want.retry
    if wanted <= room:
        return want.fresh, want.retry
    retry = (2 * room * want.retry + wanted) // (2 * wanted)
    return room - retry, retry


def _retries_allowed(connection: sqlite3.Connection, want: Want, room: int) -> int:
    if want.max_retries_running is None:
        return room
    (running,) = connection.execute(statement("fetch_retrying"), {"queue": want.queue}).fetchone()
    return max(0, want.max_retries_running - int(running))


def _rank(job: Job) -> tuple[int, object, str]:
    return (-job.priority, job.run_at, job.id)
