"""Procrastinate: psycopg, `defer` for one and `batch_defer` for many, `procrastinate worker`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from procrastinate import App, PsycopgConnector, RetryStrategy

from bench.peers import job

app = App(connector=PsycopgConnector(conninfo=job.URL))


@app.task(name="noop_async")
async def noop_async(number: int) -> None:
    job.noop(number)


@app.task(name="noop_sync")
def noop_sync(number: int) -> None:
    job.noop(number)


@app.task(name="fail_twice", retry=RetryStrategy(max_attempts=3, wait=0))
async def fail_twice(number: int) -> None:
    job.fail_twice(number)


TASKS = {"noop_async": noop_async, "noop_sync": noop_sync, "fail_twice": fail_twice}


async def setup() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def connect() -> None:
    await app.open_async().__aenter__()


async def disconnect() -> None:
    await app.close_async()


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await TASKS[task].defer_async(number=number)


async def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    await TASKS[task].batch_defer_async(*({"number": number} for number in numbers))


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    later = TASKS[task].configure(schedule_at=datetime.fromtimestamp(due, UTC))
    await later.batch_defer_async(*({"number": number} for number in numbers))


job.gate()
