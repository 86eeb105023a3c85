"""Many jobs due at the same moment: priorities, the retry share and queue weights order them like any other jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from tests.chaos.crew import Engine

from perdure import App, Settings, current_job

PATIENCE = 60.0
JOBS = 5000

every_engine = pytest.mark.every_engine


@pytest.fixture
def app(engine: Engine) -> Iterator[App]:
    app = App(engine.url, settings=Settings(poll=timedelta(seconds=1)))
    yield app
    app.close()


@asynccontextmanager
async def working(app: App, queues: Sequence[str] | None = None, concurrency: int | None = None) -> AsyncIterator[None]:
    worker = app.make_worker(queues, concurrency)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        worker.stop()
        await running


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await is_so():
            await asyncio.sleep(0.01)


class Order:
    """The order in which the jobs of a test start: the name that each was enqueued with."""

    def __init__(self) -> None:
        self.started: list[str] = []

    async def run(self, name: str) -> None:
        self.started.append(name)
        await asyncio.sleep(0.002)

    async def until_started(self, name: str, count: int = 1) -> None:
        async def has_started() -> bool:
            return self.started.count(name) >= count

        await until(has_started)

    def before_last(self, name: str) -> int:
        """How many jobs of other names started before the last one of this name."""
        last = len(self.started) - self.started[::-1].index(name)
        return last - self.started[:last].count(name)


# Proves [INV-16].
@every_engine
async def test_each_job_of_a_backlog_runs_once_and_not_early(app: App) -> None:
    runs: Counter[int] = Counter()
    early = []
    due = datetime.now(UTC) + timedelta(seconds=1)

    @app.task
    async def work(number: int) -> None:
        runs[number] += 1
        if datetime.now(UTC) < due:
            early.append(number)

    async with working(app):
        bind = work.options(run_at=due).bind
        await app.enqueue_many_async([bind(number) for number in range(JOBS)])

        async def is_done() -> bool:
            return await app.client_async().count(state="succeeded") == JOBS

        await until(is_done)
    assert runs == dict.fromkeys(range(JOBS), 1)
    assert not early


@every_engine
async def test_a_higher_priority_job_that_is_due_later_overtakes_a_backlog(app: App) -> None:
    order = Order()
    work = app.task(name="work")(order.run)
    due = datetime.now(UTC) + timedelta(seconds=1)
    backlog = work.options(run_at=due).bind
    await app.enqueue_many_async([backlog("backlog") for _ in range(JOBS)])
    await work.options(run_at=due + timedelta(milliseconds=300), priority=100).enqueue_async("urgent")
    async with working(app, concurrency=10):
        await order.until_started("urgent")
    assert order.before_last("urgent") < JOBS * 7 // 10


# Proves [INV-9].
@every_engine
async def test_due_retries_keep_their_share_beside_a_backlog(app: App) -> None:
    order = Order()
    due = datetime.now(UTC) + timedelta(seconds=2)

    @app.task(retry="delays([100ms])")
    async def work(name: str) -> None:
        if name == "retry" and current_job().attempt == 1:
            raise ConnectionError("the first attempt always fails")
        await order.run(name)

    retries = 50
    await app.enqueue_many_async([work.options(run_at=due).bind("backlog") for _ in range(JOBS)])
    async with working(app, concurrency=10):
        # Each of them fails once when the backlog is due, and is a due retry from then on.
        bind = work.options(run_at=due, priority=1).bind
        await app.enqueue_many_async([bind("retry") for _ in range(retries)])
        await order.until_started("retry", retries)
    # Their share is a fifth of all starts; without it they would come after the whole backlog.
    assert order.before_last("retry") < JOBS * 7 // 10


# Proves [INV-18].
@every_engine
async def test_another_queue_keeps_its_weight_beside_a_backlog(app: App) -> None:
    order = Order()
    work = app.task(name="work", queue="busy")(order.run)
    due = datetime.now(UTC) + timedelta(seconds=1)
    await app.enqueue_many_async([work.options(run_at=due).bind("backlog") for _ in range(JOBS)])
    other = work.options(run_at=due + timedelta(milliseconds=300), queue="other").bind
    await app.enqueue_many_async([other("other") for _ in range(20)])
    async with working(app, queues=["busy", "other"], concurrency=10):
        await order.until_started("other", 20)
    assert order.before_last("other") < JOBS * 7 // 10


async def test_a_backlog_of_another_workers_queue_becomes_ready(app: App) -> None:
    @app.task(queue="other")
    async def work(number: int) -> None:
        raise AssertionError("no worker serves this queue")

    async with working(app, queues=["mine"]):
        bind = work.options(delay=0.2).bind
        await app.enqueue_many_async([bind(number) for number in range(JOBS)])

        async def is_ready() -> bool:
            return await app.client_async().count(state="ready") == JOBS

        await until(is_ready)


async def test_a_backlog_becomes_ready_while_no_slot_is_free(app: App) -> None:
    started, may_end = asyncio.Event(), asyncio.Event()

    @app.task
    async def block() -> None:
        started.set()
        await may_end.wait()

    @app.task
    async def work(number: int) -> None:
        pass

    async with working(app, concurrency=1):
        await block.enqueue_async()
        await asyncio.wait_for(started.wait(), PATIENCE)
        bind = work.options(delay=0.2).bind
        await app.enqueue_many_async([bind(number) for number in range(JOBS)])

        async def is_ready() -> bool:
            return await app.client_async().count(state="waiting") == 0

        await until(is_ready)
        may_end.set()

        async def is_done() -> bool:
            return await app.client_async().count(state="succeeded") == JOBS + 1

        await until(is_done)
