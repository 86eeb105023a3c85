"""The verbs that move jobs between waiting and running, and out of the store: promote, reap, prune, cancel.

A large limit is done in several scripts, each atomic and soon over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from perdure.engines.redis.record import to_job, to_moment
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Call, Verb
from perdure.model.job import JobId, WorkerId
from perdure.store.jobs import CancelAnswer, Promoted, Reaped

MOST = 1000
"""The most jobs that one script moves."""


def promote(limit: int) -> Verb[Promoted]:
    count, left = 0, max(0, limit)
    while True:
        asked = min(left, MOST)
        number, next_run_at = yield Call("promote", (asked,), is_write=True)
        count, left = count + number, left - asked
        if number < asked or left == 0:
            return Promoted(count=count, next_run_at=to_moment(next_run_at))


def reap(limit: int) -> Verb[Reaped]:
    expired, *parts = yield Call("reap", (max(0, min(limit, MOST)), MOST), is_write=True)
    workers = tuple(sorted(WorkerId(name.decode()) for name in expired))
    return Reaped(workers=workers, jobs=tuple(map(to_job, *parts)))


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
