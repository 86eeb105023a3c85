"""Looks for damage and repairs it: records that cannot be read, and jobs whose record contradicts itself.

Queues are indexes here and counts are counted, so neither can be wrong by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from perdure.engines.job_faults import faults_of
from perdure.engines.postgres import forwards, notes, queues, reads, schedules
from perdure.engines.postgres.rows import is_id, to_job, to_text
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.engines.set_aside import collecting, each_readable, why_unreadable
from perdure.model.job import JobId
from perdure.store.audit import Audited, Fault
from perdure.store.reply import Reply

_ALL = 1_000_000_000
"""More schedules than there can be."""


class AuditVerbs:
    """The verbs of audits, for the store."""

    _ask: Callable[[Verb[Any]], Reply[Any]]

    def examine(self, kind: Literal["job", "schedule"], name: str) -> Reply[str | None]:
        return self._ask(Verb(lambda: _examine(kind, name), is_repeatable=True))

    def audit(self, cursor: str | None, limit: int) -> Reply[Audited]:
        return self._ask(Verb(lambda: _audit(cursor, limit), is_repeatable=True))

    def repair(self, faults: Sequence[Fault]) -> Reply[list[bool]]:
        return self._ask(Verb(lambda: _repair(faults), is_repeatable=True, may_collide=True))


def _examine(kind: Literal["job", "schedule"], name: str) -> Script[str | None]:
    with collecting() as found:
        if kind == "job":
            yield from reads.get([JobId(name)]).script()
        else:
            yield from schedules.get_schedules([name]).script()
    return why_unreadable(found)


def _audit(cursor: str | None, limit: int) -> Script[Audited]:
    section, _, after = (cursor or "small:").partition(":")
    if section == "small":
        found = yield from _small()
        return Audited(faults=tuple(found), cursor="jobs:")
    if section == "jobs":
        return (yield from _jobs(after or None, limit))
    return (yield from _attempts(after, limit))


def _small() -> Script[list[Fault]]:
    """What is wrong with everything that there are few of."""
    with collecting() as found:
        yield from reads.workers().script()
        yield from schedules.schedules(_ALL, None, False).script()
        yield from queues.queues().script()
        forwards.read((yield Step("audit_forwards")))
        notes.read((yield Step("audit_notes")))
    return found


def _jobs(after: str | None, limit: int) -> Script[Audited]:
    workers = {to_text(name) for (name,) in (yield Step("audit_workers"))}
    rows = yield Step("audit_jobs", {"after": after, "limit": limit})
    with collecting() as found:
        jobs = each_readable("job", rows, lambda row: row[0], to_job)
    found += faults_of(jobs, workers)
    return Audited(faults=tuple(found), cursor=f"jobs:{rows[-1][0]}" if len(rows) == limit else "attempts:0:")


def _attempts(after: str, limit: int) -> Script[Audited]:
    attempt, _, job_id = after.partition(":")
    rows = yield Step("audit_attempts", {"job_id": job_id or None, "attempt": int(attempt), "limit": limit})
    with collecting() as found:
        each_readable("attempt", rows, reads.attempt_name, reads.to_attempt)
    cursor = f"attempts:{rows[-1][1]}:{rows[-1][0]}" if len(rows) == limit else None
    return Audited(faults=tuple(found), cursor=cursor)


def _repair(faults: Sequence[Fault]) -> Script[list[bool]]:
    ids = [JobId(fault.name) for fault in faults if fault.detail == "job" and is_id(fault.name)]
    with collecting():
        jobs = yield from reads.get(ids).script()
    known = [job.id for job in jobs if job is not None]
    done = {job_id for (job_id,) in (yield Step("repair_jobs", {"ids": known}))} if known else set()
    return [fault.detail == "job" and fault.name in done for fault in faults]
