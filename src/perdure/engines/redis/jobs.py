"""The verbs that move jobs between waiting and running, and out of the store: promote, reap, prune, cancel.

A large limit is done in several scripts, each atomic and soon over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from perdure.engines.redis.fetch import set_aside
from perdure.engines.redis.record import to_job, to_moment
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Call, Verb
from perdure.engines.renewal import to_renewal
from perdure.engines.set_aside import moment_or_none, readable
from perdure.model.job import Job, JobId, WorkerId
from perdure.store.jobs import CancelAnswer, Promoted, Reaped
from perdure.store.workers import Renewal
from perdure.system.clock import from_microseconds, to_microseconds

MOST = 1000
"""The most jobs that one script moves."""


def promote(limit: int) -> Verb[Promoted]:
    count, left = 0, max(0, limit)
    while True:
        asked = min(left, MOST)
        number, next_run_at, now = yield Call("promote", (asked,), is_write=True)
        count, left = count + number, left - asked
        if number < asked or left == 0:
            return Promoted(
                count=count,
                next_run_at=moment_or_none(partial(to_moment, next_run_at)),
                now=from_microseconds(int(now)),
            )


def reap(limit: int, silent: Sequence[Renewal] | None) -> Verb[Reaped]:
    judged = [part for one in (silent or ())[:MOST] for part in (one.worker.encode(), to_microseconds(one.beat_at))]
    arguments = (max(0, min(limit, MOST)), MOST, "" if silent is None else "1", *judged)
    expired, *parts, now, renewals = yield Call("reap", arguments, is_write=True)
    jobs: list[Job] = []
    unreadable: dict[WorkerId, list[tuple[bytes, bytes]]] = {}
    for holder, job_id, text, args, error in zip(*parts, strict=True):
        job = None if text is None else readable("job", job_id, partial(to_job, job_id, text, args, error))
        if job is None or job.state != "running":
            # Not a running job, as far as can be told: it is taken from its worker.
            unreadable.setdefault(WorkerId(holder.decode()), []).append((job_id, b""))
        else:
            jobs.append(job)
    for worker, some in unreadable.items():
        yield set_aside(worker, some)
    return Reaped(
        workers=tuple(sorted(WorkerId(name.decode()) for name in expired)),
        jobs=tuple(jobs),
        renewals=tuple(_renewal(name.decode(), int(beat), int(until), int(now)) for name, beat, until in renewals),
    )


def prune(older_than: timedelta, limit: int) -> Verb[int]:
    count = 0
    while count < limit:
        asked = min(limit - count, MOST)
        pruned = yield Call("prune", (from_duration(older_than), asked), is_write=True)
        count += pruned
        if pruned < asked:
            break
    return count


def cancel(ids: Sequence[JobId], reason: str) -> Verb[list[CancelAnswer]]:
    answers: list[CancelAnswer] = []
    for first in range(0, len(ids), MOST):
        page = [job_id.encode() for job_id in ids[first : first + MOST]]
        found = yield Call("cancel", (reason.encode(), *page), is_write=True, is_repeatable=False)
        answers += [answer.decode() for answer in found]
    return answers


def _renewal(worker: str, beat_at: int, until: int, now: int) -> Renewal:
    # Without a known beat the lease is taken to be as long as what is left of it.
    return to_renewal(worker, beat_at, until - (beat_at or now), until - now)
