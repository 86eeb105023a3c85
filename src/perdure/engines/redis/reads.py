"""Everything that can be asked about jobs without changing anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from perdure.clock import from_microseconds
from perdure.engines.redis.filter import LOOK_AT, Match, Search, count_matching, dead_among, is_state_alone
from perdure.engines.redis.rows import to_attempt, to_duration, to_failure, to_job, to_moment
from perdure.engines.redis.verb import Call, Verb
from perdure.model.job import Attempt, Job, JobId, WorkerId
from perdure.store.reads import MOST_RECENT, ErrorGroup, JobFilter, Recent, RecentState


def get(ids: Sequence[JobId]) -> Verb[list[Job | None]]:
    jobs: list[Job | None] = []
    encoded = [job_id.encode() for job_id in ids]
    for first in range(0, len(encoded), LOOK_AT):
        page = encoded[first : first + LOOK_AT]
        found = yield Call("get", page)
        jobs += [to_job(job_id, flat) if flat else None for job_id, flat in zip(page, found, strict=True)]
    return jobs


def history(job_id: JobId, limit: int) -> Verb[list[Attempt]]:
    job, records = yield Call("history", (job_id.encode(), max(0, limit)))
    attempts = [to_attempt(job_id, record) for record in records]
    state, attempt, reason, worker, started_at, ended_at = job
    if state in (b"running", b"succeeded"):
        is_running = state == b"running"
        attempts.append(
            Attempt(
                job_id=job_id,
                attempt=int(attempt),
                outcome="running" if is_running else "succeeded",
                reason=None if is_running or reason is None else reason.decode(),
                worker=None if worker is None else WorkerId(worker.decode()),
                started_at=to_moment(started_at),
                ended_at=to_moment(ended_at),
            )
        )
    return attempts[-limit:] if limit > 0 else []


def list_jobs(where: JobFilter, limit: int, after: JobId | None) -> Verb[list[Job]]:
    search = Search(where, "whole", "down", after or "")
    matches = yield from search.page(max(0, limit))
    return [to_job(job_id, flat) for job_id, flat in matches]


def count(where: JobFilter) -> Verb[int]:
    if not is_state_alone(where):
        return (yield from count_matching(where))
    number, counters, *_ = yield Call("counts")
    if where.state is None:
        return int(number)
    wanted = where.state.encode() + b":"
    counted = zip(counters[::2], counters[1::2], strict=True)
    return sum(int(value) for field, value in counted if field.startswith(wanted))


def groups(where: JobFilter, limit: int) -> Verb[list[ErrorGroup]]:
    dead = dead_among(where)
    if dead is None:
        return []
    search = Search(dead, "brief", "up", "")
    found: dict[bytes, dict[str, Any]] = {}
    while not search.is_over:
        page = yield from search.page(LOOK_AT)
        for match in page:
            _add(found, match)
    ordered = sorted(found.items(), key=lambda item: (-item[1]["count"], item[0]))
    return [ErrorGroup(fingerprint=name.decode(), **group) for name, group in ordered[: max(0, limit)]]


def recent(state: RecentState, limit: int) -> Verb[list[Recent]]:
    line = "ended" if state == "succeeded" else state
    found: list[Recent] = []
    rows = yield Call("recent", (line, max(0, min(limit, MOST_RECENT))))
    for task, queue, is_in, lane, attempt, failures, run_at, reason, delay, started_at, ended_at in rows:
        if task is None:
            continue
        found.append(
            Recent(
                task=task.decode(),
                queue=queue.decode(),
                state=is_in.decode(),
                lane="fresh" if lane is None else "retry",
                attempt=int(attempt or 0),
                failures=int(failures or 0),
                run_at=from_microseconds(int(run_at)),
                reason=None if reason is None else reason.decode(),
                delay=to_duration(delay),
                started_at=to_moment(started_at),
                ended_at=to_moment(ended_at),
            )
        )
    return found


def store_now() -> Verb[datetime]:
    now = yield Call("now")
    return from_microseconds(int(now))


def _add(found: dict[bytes, dict[str, Any]], match: Match) -> None:
    """Count a dead job to its group; they come oldest first, so that the newest stays as the sample."""
    job_id, (task, fingerprint, ended_at, error) = match
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
