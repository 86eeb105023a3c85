"""A hint reaches the parts of a worker that do not fetch, too: some after each, others now and then, none never."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from perdure import App, Settings
from perdure.runtime.wakeup_router import WakeupRouter

PATIENCE = 60.0


async def test_a_running_job_is_cancelled_after_a_hint_however_rarely_the_worker_polls(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}", settings=Settings(poll=timedelta(hours=1)))
    started, broken_off = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()

    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    try:
        job_id = await work.enqueue_async()
        await asyncio.wait_for(started.wait(), PATIENCE)
        await app.client_async().cancel(job_id)
        await asyncio.wait_for(broken_off.wait(), PATIENCE)
    finally:
        worker.stop()
        worker.stop()
        await running
        app.close()


class Part:
    """A part that counts how often it is woken."""

    def __init__(self) -> None:
        self.count = 0

    def wake(self) -> None:
        self.count += 1


class Parts:
    """The parts of a worker, and the hints that reach them."""

    def __init__(self) -> None:
        self.fetcher, self.promoter, self.canceller = Part(), Part(), Part()
        self.hints = WakeupRouter(
            fetching=self.fetcher.wake, promoting=cast(Any, self.promoter), rest=[cast(Any, self.canceller)]
        )


@pytest.fixture
async def parts() -> Parts:
    return Parts()


async def until_more(part: Part, than: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while part.count <= than:
            await asyncio.sleep(0.001)


async def test_after_many_hints_in_a_row_the_rest_has_looked_seldom_but_after_the_last(parts: Parts) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(30):
        parts.hints.hear()
        assert parts.fetcher.count == number + 1, "who fetches is told at once"
        await until_more(parts.promoter, number)
    before, took = parts.canceller.count, loop.time() - began
    assert 1 <= before <= took / 0.1 + 2
    await until_more(parts.canceller, before)
    assert parts.promoter.count == 30


async def test_hints_that_come_together_are_one_look_of_the_others(parts: Parts) -> None:
    for _ in range(5):
        parts.hints.hear()
    await until_more(parts.canceller, 0)
    assert (parts.fetcher.count, parts.promoter.count, parts.canceller.count) == (5, 1, 1)


async def test_a_hint_from_another_thread_is_passed_on_by_the_loop(parts: Parts) -> None:
    threads: set[threading.Thread] = set()
    wake = parts.fetcher.wake
    parts.hints._fetching = lambda: (threads.add(threading.current_thread()), wake())[1]
    await asyncio.to_thread(parts.hints.hear)
    await until_more(parts.fetcher, 0)
    assert threads == {threading.current_thread()}
