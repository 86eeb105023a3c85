"""Looks for damage and repairs it: records that cannot be read, and jobs whose record contradicts itself.

Queues are indexes here and counts are counted, so neither can be wrong by itself.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from perdure.engines.job_faults import faults_of
from perdure.engines.set_aside import collecting, each_readable, to_name, why_unreadable
from perdure.engines.sqlite import forwards, notes, queues, reads, schedules
from perdure.engines.sqlite.request import Work
from perdure.engines.sqlite.rows import Row, read_rows, to_job
from perdure.engines.sqlite.sql import statement
from perdure.model.job import JobId
from perdure.store.audit import Audited, Fault
from perdure.store.reply import Reply

T = TypeVar("T")
_SECTIONS = ("small", "jobs", "attempts")
_ALL = 1_000_000_000
"""More schedules than there can be."""


class AuditVerbs:
    """The verbs of audits, for the store."""

    _read: Callable[[Work[Any]], Reply[Any]]
    _write: Callable[[Work[Any]], Reply[Any]]

    def examine(self, kind: Literal["job", "schedule"], name: str) -> Reply[str | None]:
        return self._read(functools.partial(examine, kind=kind, name=name))

    def audit(self, cursor: str | None, limit: int) -> Reply[Audited]:
        return self._read(functools.partial(audit, cursor=cursor, limit=limit))

    def repair(self, faults: Sequence[Fault]) -> Reply[list[bool]]:
        return self._write(functools.partial(repair, faults=faults))


def examine(connection: sqlite3.Connection, now: int, kind: Literal["job", "schedule"], name: str) -> str | None:
    with collecting() as found:
        if kind == "job":
            reads.get(connection, now, [JobId(name)])
        else:
            schedules.get_schedules(connection, now, [name])
    return why_unreadable(found)


def audit(connection: sqlite3.Connection, now: int, cursor: str | None, limit: int) -> Audited:
    section, _, after = (cursor or "small:").partition(":")
    match section:
        case "small":
            return Audited(faults=tuple(_small(connection, now)), cursor="jobs:0")
        case "jobs":
            return _jobs(connection, int(after), limit)
        case _:
            return _attempts(connection, after, limit)


def repair(connection: sqlite3.Connection, now: int, faults: Sequence[Fault]) -> list[bool]:
    return [fault.detail == "job" and _repair(connection, now, fault.name) for fault in faults]


def _repair(connection: sqlite3.Connection, now: int, job_id: str) -> bool:
    with collecting() as unreadable:
        reads.get(connection, now, [JobId(job_id)])
    if unreadable:
        return False
    try:
        return connection.execute(statement("repair_job"), {"id": job_id, "now": now}).rowcount == 1
    except sqlite3.IntegrityError:
        return False  # its unique key is another live job's by now


def _small(connection: sqlite3.Connection, now: int) -> list[Fault]:
    """What is wrong with everything that there are few of."""
    with collecting() as found:
        reads.workers(connection, now)
        schedules.schedules(connection, now, _ALL, None, False)
        queues.queues(connection, now)
        forwards.all_forwards(connection)
        notes.all_notes(connection)
    return found


def _jobs(connection: sqlite3.Connection, after: int, limit: int) -> Audited:
    workers = {name for (name,) in connection.execute(statement("audit_workers")).fetchall()}
    rows = read_rows(connection, statement("audit_jobs"), {"after": after, "limit": limit})
    with collecting() as found:
        jobs = each_readable("job", rows, lambda row: to_name(row[0]), lambda row: to_job(row[:-1]))
    found += faults_of(jobs, workers)
    cursor = f"jobs:{rows[-1][-1]}" if len(rows) == limit else "attempts:0:"
    return Audited(faults=tuple(found), cursor=cursor)


def _attempts(connection: sqlite3.Connection, after: str, limit: int) -> Audited:
    attempt, _, job_id = after.partition(":")
    values = {"job_id": job_id, "attempt": int(attempt), "limit": limit}
    rows: list[Row] = read_rows(connection, statement("audit_attempts"), values)
    with collecting() as found:
        each_readable("attempt", rows, reads.attempt_name, reads.to_attempt)
    cursor = f"attempts:{rows[-1][1]}:{rows[-1][0]}" if len(rows) == limit else None
    return Audited(faults=tuple(found), cursor=cursor)
