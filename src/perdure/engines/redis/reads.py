"""Everything that can be asked about jobs without changing anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from perdure.engines.redis.filter import LOOK_AT, Match, Search, count_matching, dead_among, is_state_alone
from perdure.engines.redis.record import Record, to_duration, to_failure, to_job, to_moment, to_record, to_text
from perdure.engines.redis.rows import to_attempt, to_count
from perdure.engines.redis.verb import Call, Verb
from perdure.engines.set_aside import each_readable, one_of, readable
from perdure.model.job import Attempt, Job, JobId, WorkerId
from perdure.model.state import STATES
from perdure.store.reads import MOST_RECENT, ErrorGroup, JobFilter, Recent, RecentState
from perdure.system.clock import from_microseconds


def get(ids: Sequence[JobId]) -> Verb[list[Job | None]]:
    jobs: list[Job | None] = []
    encoded = [job_id.encode() for job_id in ids]
    for first in range(0, len(encoded), LOOK_AT):
        page = encoded[first : first + LOOK_AT]
        parts = yield Call("get", page)
        jobs += [
            None if one[1] is None else readable("job", one[0], partial(to_job, *one))
            for one in zip(page, *parts, strict=True)
        ]
    return jobs


def history(job_id: JobId, limit: int) -> Verb[list[Attempt]]:
    text, records = yield Call("history", (job_id.encode(), max(0, limit)))
    attempts = each_readable("attempt", records, lambda _: f"of job {job_id}", partial(to_attempt, job_id))
    last = None if text is None else readable("job", job_id, lambda: _last_attempt(job_id, to_record(text)))
    if last is not None:
        attempts.append(last)
    return attempts[-limit:] if limit > 0 else []


def _last_attempt(job_id: JobId, job: Record) -> Attempt | None:
    """The attempt that the job's own record keeps: the running one, or the one that succeeded."""
    if job.state not in (b"running", b"succeeded"):
        return None
    is_running = job.state == b"running"
    return Attempt(
        job_id=job_id,
        attempt=int(job.attempt),
        outcome="running" if is_running else "succeeded",
        reason=None if is_running else to_text(job.reason),
        worker=WorkerId(job.worker.decode()) if job.worker else None,
        started_at=to_moment(job.started_at),
        ended_at=to_moment(job.attempt_ended_at),
    )


def list_jobs(where: JobFilter, limit: int, after: JobId | None) -> Verb[list[Job]]:
    search = Search(where, "whole", "down", after or "")
    jobs: list[Job] = []
    while len(jobs) < limit and not search.is_over:
        page = yield from search.page(limit - len(jobs))
        jobs += each_readable("job", page, lambda match: match[0], _to_job)
    return jobs


def count(where: JobFilter) -> Verb[int]:
    if not is_state_alone(where):
        return (yield from count_matching(where))
    number, counters, *_ = yield Call("counts")
    if where.state is None:
        return int(number)
    wanted = where.state.encode() + b":"
    counted = zip(counters[::2], counters[1::2], strict=True)
    return sum(to_count(field, value) for field, value in counted if field.startswith(wanted))


def groups(where: JobFilter, limit: int) -> Verb[list[ErrorGroup]]:
    dead = dead_among(where)
    if dead is None:
        return []
    search = Search(dead, "brief", "up", "")
    found: dict[bytes, dict[str, Any]] = {}
    while not search.is_over:
        page = yield from search.page(LOOK_AT)
        for match in page:
            readable("job", match[0], partial(_add, found, match))
    ordered = sorted(found.items(), key=lambda item: (-item[1]["count"], item[0]))
    return [ErrorGroup(fingerprint=name.decode(), **group) for name, group in ordered[: max(0, limit)]]


def recent(state: RecentState, limit: int) -> Verb[list[Recent]]:
    line = "ended" if state == "succeeded" else state
    found: list[Recent] = []
    records = yield Call("recent", (line, max(0, min(limit, MOST_RECENT))))
    for job_id, text in zip(records[::2], records[1::2], strict=True):
        if text is not None:
            found += each_readable("job", [text], lambda _, name=job_id: name, _to_recent)  # type: ignore[misc]
    return found


def _to_recent(text: bytes) -> Recent:
    job = to_record(text)
    return Recent(
        task=job.task.decode(),
        queue=job.queue.decode(),
        state=one_of(job.state.decode(), STATES, "its state"),
        lane="retry" if job.lane else "fresh",
        attempt=int(job.attempt),
        failures=int(job.failures),
        run_at=from_microseconds(int(job.run_at)),
        reason=to_text(job.reason),
        delay=to_duration(job.delay),
        started_at=to_moment(job.started_at),
        ended_at=to_moment(job.ended_at),
    )


def store_now() -> Verb[datetime]:
    now = yield Call("now")
    return from_microseconds(int(now))


def _to_job(match: Match) -> Job:
    job_id, error, record, args, result = match
    return to_job(job_id, record, args, error, result)


def _add(found: dict[bytes, dict[str, Any]], match: Match) -> None:
    """Count a dead job to its group; they come oldest first, so that the newest stays as the sample."""
    job_id, error, task, fingerprint, ended_at = match
    moment = from_microseconds(int(ended_at))
    group = found.setdefault(fingerprint, {"count": 0, "first_at": moment, "last_at": moment})
    group.update(
        task=task.decode(),
        count=group["count"] + 1,
        first_at=min(moment, group["first_at"]),
        last_at=max(moment, group["last_at"]),
        sample=to_failure(error),
        sample_id=JobId(job_id.decode()),
    )
