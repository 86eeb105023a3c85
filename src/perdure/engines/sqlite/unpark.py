"""Claims parked jobs for a worker that knows their tasks, without waiting until they are due."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from perdure.engines.sqlite.fetch import claim, holds_lease, room_of
from perdure.engines.sqlite.request import NOT_ANSWERED, NotAnswered
from perdure.engines.sqlite.sql import statement
from perdure.model.job import Job, WorkerId
from perdure.store.jobs import Want


def peek_unpark(
    connection: sqlite3.Connection, now: int, wants: Sequence[Want], tasks: Sequence[str]
) -> list[Job] | NotAnswered:
    """Nothing, if nothing is parked; so that idle workers take no lock."""
    values = {"queues": _names([want.queue for want in wants]), "tasks": _names(tasks)}
    (is_any,) = connection.execute(statement("unpark_peek"), values).fetchone()
    return NOT_ANSWERED if is_any else []


def unpark(
    connection: sqlite3.Connection, now: int, worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int
) -> list[Job]:
    """Claim up to `limit` parked jobs of these tasks, going through the wants in their order."""
    jobs: list[Job] = []
    if not holds_lease(connection, worker):
        return jobs
    for want in wants:
        room = room_of(connection, want, limit - len(jobs))
        chosen = _chosen(connection, now, want, "fresh", tasks, room)
        left = room - len(chosen)
        if want.max_retries_running is not None and left > 0:
            # [INV-10] Counted under the write lock of the claim, so that the cap is exact over all workers.
            (running,) = connection.execute(statement("unpark_retries"), {"queue": want.queue}).fetchone()
            left = min(left, want.max_retries_running - running)
        chosen += _chosen(connection, now, want, "retry", tasks, left)
        if chosen:
            jobs += claim(connection, now, worker, chosen)
    return jobs


def _chosen(
    connection: sqlite3.Connection, now: int, want: Want, lane: str, tasks: Sequence[str], room: int
) -> list[int]:
    if room <= 0:
        return []
    values = {"queue": want.queue, "lane": lane, "tasks": _names(tasks), "room": room, "now": now}
    return [rowid for (rowid,) in connection.execute(statement("unpark_candidates"), values).fetchall()]


def _names(names: Sequence[str]) -> str:
    return msgspec.json.encode(names).decode()
