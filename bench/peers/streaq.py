"""streaQ: `enqueue` for one and `enqueue_many` for many, the `streaq` command with one process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from streaq import StreaqRetry, Worker

from bench.peers import job

worker = Worker(redis_url=job.URL, concurrency=50)


@worker.task(name="noop_async", silent=True, ttl=0)
async def noop_async(number: int) -> None:
    job.noop(number)


@worker.task(name="noop_sync", silent=True, ttl=0)
def noop_sync(number: int) -> None:
    job.noop(number)


@worker.task(name="fail_twice", silent=True, ttl=0)
async def fail_twice(number: int) -> None:
    # Only this exception is tried again.
    try:
        job.fail_twice(number)
    except job.OnPurposeError:
        raise StreaqRetry(delay=0) from None


TASKS = {"noop_async": noop_async, "noop_sync": noop_sync, "fail_twice": fail_twice}


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    async with worker:
        for number in numbers:
            await TASKS[task].enqueue(number)


async def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    async with worker:
        await worker.enqueue_many([TASKS[task].enqueue(number) for number in numbers])


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC)
    async with worker:
        await worker.enqueue_many([TASKS[task].enqueue(number).start(schedule=moment) for number in numbers])


job.gate()
