"""Awa: its asynchronous client over a Rust core, `insert` for one and COPY for many."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from awa import AsyncClient, RetryAfter

from bench.peers import job

_open: list[AsyncClient] = []


@dataclass
class NoopAsync:
    """The arguments, whose type is the task."""

    number: int


@dataclass
class NoopSync:
    """The same for a handler that blocks."""

    number: int


@dataclass
class FailTwice:
    """The same for a handler that fails."""

    number: int


KINDS = {"noop_async": NoopAsync, "noop_sync": NoopSync, "fail_twice": FailTwice}


async def setup() -> None:
    client = AsyncClient(job.URL)
    await client.migrate()
    await client.install_queue_storage()


async def connect() -> None:
    _open.append(AsyncClient(job.URL))


async def enqueue_one(task: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        await _open[0].insert(KINDS[task](number))


async def enqueue_bulk(task: str, numbers: Sequence[int]) -> None:
    await _open[0].enqueue_many_copy([KINDS[task](number) for number in numbers])


async def enqueue_at(task: str, numbers: Sequence[int], due: float) -> None:
    moment = datetime.fromtimestamp(due, UTC)
    await _open[0].enqueue_many_copy([KINDS[task](number) for number in numbers], run_at=moment)


async def work() -> None:
    client = AsyncClient(job.URL)

    @client.task(NoopAsync)
    async def noop_async(one: Any) -> None:
        job.noop(one.args.number)

    @client.task(NoopSync)
    async def noop_sync(one: Any) -> None:
        await asyncio.to_thread(job.noop, one.args.number)

    @client.task(FailTwice)
    async def fail_twice(one: Any) -> Any:
        # Raised errors wait by a back-off of their own; this is its way to say at once.
        try:
            job.fail_twice(one.args.number)
        except job.OnPurposeError:
            return RetryAfter(0)
        return None

    await client.start([{"name": "default", "max_workers": 200}], poll_interval_ms=50, promote_interval_ms=50)
    await asyncio.Event().wait()


job.gate()
