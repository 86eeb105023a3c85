"""Everything that can be asked without changing anything, and the two switches of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from perdure.clock import from_microseconds
from perdure.engines.redis.filter import LOOK_AT, Match, Search, count_matching, dead_among, is_state_alone
from perdure.engines.redis.rows import to_attempt, to_failure, to_job, to_moment
from perdure.engines.redis.verb import Call, Verb, optional
from perdure.model.job import Attempt, Job, JobId, WorkerId
from perdure.store.reads import ErrorGroup, JobFilter, QueueInfo

_LINES = 100
"""How many lines one script looks at for their oldest job."""


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
    number, counters, _ = yield Call("counts")
    if where.state is None:
        return int(number)
    wanted = where.state.encode() + b":"
    counted = zip(counters[::2], counters[1::2], strict=True)
    return sum(int(value) for field, value in counted if field.startswith(wanted))


def queues() -> Verb[list[QueueInfo]]:
    _, counters, paused = yield Call("counts")
    known: dict[str, dict[str, Any]] = {}
    lines: list[bytes] = []
    for field, value in zip(counters[::2], counters[1::2], strict=True):
        state, lane, queue = field.split(b":", 2)
        numbers = known.setdefault(queue.decode(), {})
        numbers[state.decode()] = numbers.get(state.decode(), 0) + int(value)
        if lane == b"retry" and state in (b"waiting", b"ready"):
            numbers["retrying"] = numbers.get("retrying", 0) + int(value)
        if state == b"ready":
            lines.append(lane + b":" + queue)
    for queue, value in zip(paused[::2], paused[1::2], strict=True):
        paused_at, reason = value.split(b"|", 1)
        known.setdefault(queue.decode(), {}).update(
            is_paused=True, paused_at=to_moment(paused_at), pause_reason=reason[1:].decode() if reason else None
        )
    for first in range(0, len(lines), _LINES):
        page = lines[first : first + _LINES]
        found = yield Call("oldest", page)
        for line, run_at in zip(page, found, strict=True):
            _keep_oldest(known[line.split(b":", 1)[1].decode()], run_at)
    return [QueueInfo(name=name, **known[name]) for name in sorted(known)]


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


def store_now() -> Verb[datetime]:
    now = yield Call("now")
    return from_microseconds(int(now))


def pause(queue: str, reason: str | None) -> Verb[bool]:
    changed = yield Call("pause", (queue.encode(), optional(reason)), is_write=True, is_repeatable=False)
    return bool(changed)


def resume(queue: str) -> Verb[bool]:
    changed = yield Call("resume", (queue.encode(),), is_write=True, is_repeatable=False)
    return bool(changed)


def _keep_oldest(numbers: dict[str, Any], run_at: bytes) -> None:
    if run_at:
        moment = from_microseconds(int(run_at))
        numbers["oldest_ready_at"] = min(moment, numbers.get("oldest_ready_at", moment))


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
