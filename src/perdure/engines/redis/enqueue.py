"""Makes jobs durable: a whole batch in one script."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.clock import to_microseconds
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.errors import BadOption
from perdure.model.job import JobId, NewJob

MOST = 50_000
"""The most jobs that one batch may make: all or none is one script, and a server waits for each script to end."""


def enqueue(jobs: Sequence[NewJob]) -> Verb[list[JobId]]:
    """Make jobs; for each the id that stands for it."""
    if not jobs:
        return []
    if len(jobs) > MOST:
        raise BadOption(
            f"A batch of {len(jobs)} jobs is too large for Redis, which takes {MOST} at once.",
            "Enqueue them in several batches.",
        )
    arguments: list[Argument] = []
    for job in jobs:
        arguments += to_arguments(job)
    # Ids are made by the client, so a second try finds what the first one made.
    answer = yield Call("enqueue", arguments, is_write=True)
    return [JobId(job_id.decode()) for job_id in answer]


def to_arguments(job: NewJob) -> tuple[Argument, ...]:
    """A job as fragments/make.lua takes it."""
    delay: Argument = b"" if job.delay is None else from_duration(job.delay)
    run_at: Argument = b"" if job.delay is not None or job.run_at is None else to_microseconds(job.run_at)
    return (
        job.id.encode(),
        job.task.encode(),
        job.queue.encode(),
        job.args,
        job.priority,
        delay,
        run_at,
        optional(job.unique),
        optional(job.max_attempts),
        optional(job.retry),
        b"" if job.delivery == "at_least_once" else optional(job.delivery),
        b"" if job.timeout is None else optional(from_duration(job.timeout)),
        optional(job.schedule),
        b"" if job.tick_at is None else optional(to_microseconds(job.tick_at)),
    )
