"""Makes jobs durable: a whole batch in one script."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.engines.redis.enqueue_one import enqueue_one, is_plain
from perdure.engines.redis.record import within_or_beside
from perdure.engines.redis.rows import from_duration
from perdure.engines.redis.verb import Argument, Call, Verb, optional
from perdure.errors import BadOption
from perdure.model.job import JobId, NewJob
from perdure.system.clock import to_microseconds

KIND_WIDTH = 11
"""How many arguments a kind takes."""
JOB_WIDTH = 5
"""How many a job takes beside its kind."""
MOST = 50_000
"""The most jobs that one batch may make: all or none is one script, and a server waits for each script to end."""


def enqueue(jobs: Sequence[NewJob]) -> Verb[list[JobId]]:
    """Make jobs; for each the id that stands for it."""
    if not jobs:
        return []
    if len(jobs) == 1 and is_plain(jobs[0]):
        yield enqueue_one(jobs[0])
        return [jobs[0].id]
    if len(jobs) > MOST:
        raise BadOption(
            f"A batch of {len(jobs)} jobs is too large for Redis, which takes {MOST} at once.",
            "Enqueue them in several batches.",
        )
    kinds, made = to_arguments(jobs)
    # Ids are made by the client, so a second try finds what the first one made.
    others = yield Call("enqueue", (len(kinds) // KIND_WIDTH, *kinds, *made), is_write=True)
    ids = [job.id for job in jobs]
    for place, job_id in zip(others[::2], others[1::2], strict=True):
        ids[place - 1] = JobId(job_id.decode())
    return ids


def to_arguments(jobs: Sequence[NewJob]) -> tuple[list[Argument], list[Argument]]:
    """The kinds of some jobs, and the jobs, as fragments/make.lua takes them."""
    kinds: list[Argument] = []
    made: list[Argument] = []
    known: dict[tuple[object, ...], int] = {}
    for job in jobs:
        kind = (
            job.task,
            job.queue,
            job.priority,
            job.delay,
            job.run_at,
            job.max_attempts,
            job.retry,
            job.delivery,
            job.timeout,
            job.schedule,
            job.tick_at,
        )
        number = known.get(kind)
        if number is None:
            number = known[kind] = len(known) + 1
            kinds += _to_kind(job)
        unique = b"" if job.unique is None else optional(job.unique)
        made += (number, job.id, unique, *within_or_beside(job.args))
    return kinds, made


def _to_kind(job: NewJob) -> tuple[Argument, ...]:
    """What jobs of one kind share."""
    delay: Argument = b"" if job.delay is None else from_duration(job.delay)
    run_at: Argument = b"" if job.delay is not None or job.run_at is None else to_microseconds(job.run_at)
    return (
        job.task.encode(),
        job.queue.encode(),
        job.priority,
        delay,
        run_at,
        b"" if job.max_attempts is None else job.max_attempts,
        optional(job.retry),
        b"" if job.delivery == "at_least_once" else job.delivery,
        b"" if job.timeout is None else from_duration(job.timeout),
        optional(job.schedule),
        b"" if job.tick_at is None else to_microseconds(job.tick_at),
    )
