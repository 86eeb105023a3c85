"""The verbs that move jobs between waiting and running, and out of the store: promote, reap, prune, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from perdure.engines.postgres.notes import NOTES_AT_ONCE
from perdure.engines.postgres.rows import from_duration, from_ids, from_text, to_job, to_moment, to_text
from perdure.engines.postgres.scan_start import ScanStart
from perdure.engines.postgres.slow_claims import SlowClaims
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.engines.renewal import to_renewal
from perdure.engines.set_aside import each_readable, moment_or_none
from perdure.model.job import JobId, WorkerId
from perdure.store.jobs import CancelAnswer, Promoted, Reaped
from perdure.store.workers import Renewal
from perdure.system.clock import from_microseconds, to_microseconds


def promote(limit: int, slow: SlowClaims) -> Verb[Promoted]:
    return Verb(lambda: _promote(limit, slow), is_repeatable=True, plan="promote")


def reap(limit: int, silent: Sequence[Renewal] | None) -> Verb[Reaped]:
    # Two statements that do not need each other: whoever was struck off has orphans until these are decided about.
    return Verb(lambda: _reap(limit, silent), is_repeatable=True)


def prune(older_than: timedelta, limit: int, start: ScanStart) -> Verb[int]:
    return Verb(lambda: _prune(older_than, limit, start), is_repeatable=True)


def cancel(ids: Sequence[JobId], reason: str) -> Verb[list[CancelAnswer]]:
    return Verb(lambda: _cancel(ids, reason))


def _promote(limit: int, slow: SlowClaims) -> Script[Promoted]:
    since = slow.waiting.next()
    found = yield Step("promote", {"limit": max(0, limit), "since": since})
    ((count, next_run_at, now, first_run_at, reached, took),) = found
    slow.waiting.observe(since, reached, count, took)
    if count:
        slow.moved_back(first_run_at)
    return Promoted(
        count=count, next_run_at=moment_or_none(partial(to_moment, next_run_at)), now=from_microseconds(now)
    )


def _reap(limit: int, silent: Sequence[Renewal] | None) -> Script[Reaped]:
    given = silent or ()
    values = {
        "is_judged": silent is not None,
        "workers": [from_text(renewal.worker) for renewal in given],
        "beats": [to_microseconds(renewal.beat_at) for renewal in given],
    }
    found = yield Step("reap_workers", values)
    rows = yield Step("reap_jobs", {"limit": max(0, limit)})
    jobs = each_readable("job", rows, lambda row: row[0], to_job)
    if len(jobs) < len(rows):
        known = {job.id for job in jobs}
        yield Step("set_aside", {"ids": [row[0] for row in rows if row[0] not in known], "worker": None})
    return Reaped(
        workers=tuple(sorted(WorkerId(to_text(name)) for name, _, _, _, is_struck in found if is_struck)),
        jobs=tuple(jobs),
        renewals=tuple(to_renewal(to_text(name), *times) for name, *times, is_struck in found if not is_struck),
    )


def _prune(older_than: timedelta, limit: int, start: ScanStart) -> Script[int]:
    since = start.next()
    values = {"age": from_duration(older_than), "limit": max(0, limit), "since": since}
    ((count, reached, took),) = yield Step("prune", values)
    start.observe(since, reached, count, took)
    yield Step("note_forget", {"limit": NOTES_AT_ONCE})
    return int(count)


def _cancel(ids: Sequence[JobId], reason: str) -> Script[list[CancelAnswer]]:
    rows = yield Step("cancel", {"ids": from_ids(ids), "reason": from_text(reason)})
    found = {row[0]: row for row in rows}
    answers: list[CancelAnswer] = []
    seen: set[JobId] = set()
    for job_id in ids:
        answers.append(_answer(found.get(job_id), is_again=job_id in seen))
        seen.add(job_id)
    return answers


def _answer(row: Row | None, *, is_again: bool) -> CancelAnswer:
    if row is None:
        return "not found"
    _, given, before = row
    if given == "running":
        return "asked"
    if given == "cancelled":
        return "already cancelled" if is_again else "cancelled"
    return "already cancelled" if before == "cancelled" else "already ended"
