"""Changes jobs that have not started: change.

Many jobs are done in several scripts, each atomic and soon over.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from perdure.engines.redis.jobs import MOST
from perdure.engines.redis.record import within_or_beside
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.model.change import Change
from perdure.model.job import JobId
from perdure.store.jobs import ChangeAnswer
from perdure.system.clock import to_microseconds


def change(ids: Sequence[JobId], change: Change) -> Verb[list[ChangeAnswer]]:
    """Make waiting and ready jobs as the change says."""
    delay: Argument = b"" if change.delay is None else from_duration(change.delay)
    run_at: Argument = b"" if change.delay is not None or change.run_at is None else to_microseconds(change.run_at)
    limit = b"" if change.max_attempts is UNSET else optional(change.max_attempts) or b"="
    delivery = b"=" if change.delivery == "at_least_once" else optional(change.delivery)
    args, long_args = (b"", b"") if change.args is None else within_or_beside(change.args)
    kept = (optional(change.priority), optional(change.queue), limit, delivery, args, long_args)
    what: tuple[Argument, ...] = (delay, run_at, *kept)
    answers: list[ChangeAnswer] = []
    for first in range(0, len(ids), MOST):
        page = [job_id.encode() for job_id in ids[first : first + MOST]]
        found = yield Call("change", (*what, *page), is_write=True, is_repeatable=False)
        answers += [answer.decode() for answer in found]
    return answers
