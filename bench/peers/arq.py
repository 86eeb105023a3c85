"""arq: `enqueue_job` by name; it has no call for many; the `arq` command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from arq import create_pool, func
from arq.connections import ArqRedis, RedisSettings
from arq.worker import Retry

from bench.peers import job

REDIS = RedisSettings.from_dsn(job.URL)
_open: list[ArqRedis] = []


async def noop_async(context: Any, number: int) -> None:
    job.noop(number)


async def noop_sync(context: Any, number: int) -> None:
    await asyncio.to_thread(job.noop, number)


async def fail_twice(context: Any, number: int) -> None:
    # Only this exception is tried again.
    try:
        job.fail_twice(number)
    except job.OnPurposeError:
        raise Retry(defer=0) from None


class WorkerSettings:
    """What the `arq` command reads."""

    functions = [func(each, keep_result=0) for each in (noop_async, noop_sync, fail_twice)]  # noqa: RUF012 - its own form
    redis_settings = REDIS
    max_jobs = 50
    poll_delay = 0.01


async def connect() -> None:
    _open.append(await create_pool(REDIS))


async def disconnect() -> None:
    await _open.pop().aclose()


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await _open[0].enqueue_job(task, number)


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC)
    for number in numbers:
        await _open[0].enqueue_job(task, number, _defer_until=moment)


job.gate()
