"""Oban for Python: workers as classes, `enqueue` for one and `enqueue_many` for many, an instance with one queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from oban import Oban, worker
from oban.schema import install

from bench.peers import job as what

_open: list[tuple[Any, Oban]] = []


@worker(queue="default")
class NoopAsync:
    """Runs on the loop."""

    async def process(self, job: Any) -> None:
        what.noop(job.args["number"])


@worker(queue="default")
class NoopSync:
    """Blocks, in a thread."""

    async def process(self, job: Any) -> None:
        await asyncio.to_thread(what.noop, job.args["number"])


@worker(queue="default", max_attempts=3)
class FailTwice:
    """Fails, and is tried again at once."""

    async def process(self, job: Any) -> None:
        what.fail_twice(job.args["number"])

    def backoff(self, job: Any) -> int:
        return 0


TASKS = {"noop_async": NoopAsync, "noop_sync": NoopSync, "fail_twice": FailTwice}


async def setup() -> None:
    pool = await Oban.create_pool(what.URL)
    await install(pool)
    await pool.close()


async def connect() -> None:
    pool = await Oban.create_pool(what.URL)
    _open.append((pool, Oban(pool=pool)))


async def disconnect() -> None:
    await _open.pop()[0].close()


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await _open[0][1].enqueue(TASKS[task].new({"number": number}))


async def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    await _open[0][1].enqueue_many([TASKS[task].new({"number": number}) for number in numbers])


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC)
    await _open[0][1].enqueue_many([TASKS[task].new({"number": n}, scheduled_at=moment) for n in numbers])


async def work() -> None:
    pool = await Oban.create_pool(what.URL, max_size=10)
    async with Oban(pool=pool, queues={"default": 50}, stager={"interval": 0.1}):
        await asyncio.Event().wait()


what.gate()
