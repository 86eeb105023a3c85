"""SAQ on Redis and PostgreSQL: `enqueue` by name; it has no call for many; the `saq` command with one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saq import Queue

from bench.peers import job

queue = Queue.from_url(job.URL)


async def noop_async(context: Any, *, number: int) -> None:
    job.noop(number)


def noop_sync(context: Any, *, number: int) -> None:
    job.noop(number)


async def fail_twice(context: Any, *, number: int) -> None:
    job.fail_twice(number)


settings = {"queue": queue, "functions": [noop_async, noop_sync, fail_twice], "concurrency": 50}


async def setup() -> None:
    await connect()
    await disconnect()


async def connect() -> None:
    await queue.connect()


async def disconnect() -> None:
    await queue.disconnect()


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await queue.enqueue(task, number=number, retries=3)


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    for number in numbers:
        await queue.enqueue(task, number=number, retries=3, scheduled=int(due))


job.gate()
