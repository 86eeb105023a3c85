"""Chancy: `push` for one and `push_many` for many, a queue declared for the asynchronous executor, one worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime

from chancy import Chancy, Job, Queue, Worker

from bench.peers import job as what

NAMES = {"noop_async": "default", "noop_sync": "threads", "fail_twice": "default"}
QUEUES = (
    Queue("default", concurrency=50, executor="chancy.executors.asyncex.AsyncExecutor", eager_polling=True),
    Queue("threads", concurrency=50, executor="chancy.executors.thread.ThreadedExecutor", eager_polling=True),
)

_open: list[Chancy] = []


async def noop_async(*, number: int) -> None:
    what.noop(number)


def noop_sync(*, number: int) -> None:
    what.noop(number)


async def fail_twice(*, number: int) -> None:
    what.fail_twice(number)


async def setup() -> None:
    async with Chancy(what.URL) as chancy:
        await chancy.migrate()
        for queue in QUEUES:
            await chancy.declare(queue)


async def connect() -> None:
    _open.append(await Chancy(what.URL).__aenter__())


async def disconnect() -> None:
    await _open.pop().__aexit__(None, None, None)


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await _open[0].push(_job(task, number))


async def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    async for _ in _open[0].push_many([_job(task, number) for number in numbers]):
        pass


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC)
    later = [dataclasses.replace(_job(task, number), scheduled_at=moment) for number in numbers]
    async for _ in _open[0].push_many(later):
        pass


async def work() -> None:
    async with Chancy(what.URL) as chancy, Worker(chancy) as worker:
        await worker.wait_for_shutdown()


def _job(task: str, number: int) -> Job:
    return Job(func=f"bench.peers.chancy.{task}", queue=NAMES[task], kwargs={"number": number}, max_attempts=3)


what.gate()
