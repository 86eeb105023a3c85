"""PgQueuer: asyncpg, `enqueue` with lists for bulk, retries by the database, `PgQueuer.run` as `pgq run` calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.executors import DatabaseRetryEntrypointExecutor
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers import job

BATCH = 500

_open: list[tuple[asyncpg.Connection, Queries]] = []


def work() -> None:
    async def run() -> None:
        await (await make_worker()).run(batch_size=BATCH)

    uvloop.run(run())


async def make_worker() -> PgQueuer:
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(job.URL)))

    @queue.entrypoint("noop_async")
    async def noop_async(one: Job) -> None:
        job.noop(int(one.payload))

    @queue.entrypoint("noop_sync")
    async def noop_sync(one: Job) -> None:
        await asyncio.to_thread(job.noop, int(one.payload))

    at_once = partial(DatabaseRetryEntrypointExecutor, max_attempts=3, initial_delay=timedelta(0))

    @queue.entrypoint("fail_twice", executor_factory=at_once)
    async def fail_twice(one: Job) -> None:
        job.fail_twice(int(one.payload))

    return queue


async def setup() -> None:
    await connect()
    await _open[0][1].install()
    await disconnect()


async def connect() -> None:
    connection = await asyncpg.connect(job.URL)
    _open.append((connection, Queries(AsyncpgDriver(connection))))


async def disconnect() -> None:
    await _open.pop()[0].close()


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await _open[0][1].enqueue(task, b"%d" % number)


async def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    count = len(numbers)
    await _open[0][1].enqueue([task] * count, [b"%d" % number for number in numbers], [0] * count)


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    count = len(numbers)
    wait = datetime.fromtimestamp(due, UTC) - datetime.now(UTC)
    await _open[0][1].enqueue([task] * count, [b"%d" % each for each in numbers], [0] * count, [wait] * count)


job.gate()
