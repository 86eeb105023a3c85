"""Many jobs that are due at once: a hungry worker claims them where they wait, and nobody else's are forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perdure import App, Settings
from perdure.engines.sqlite.store import SqliteStore
from perdure.runtime import flood
from perdure.store.jobs import Promoted
from perdure.store.reply import Reply

PATIENCE = 30.0
JOBS = 1500


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(f"sqlite:///{tmp_path / 'jobs.db'}", settings=Settings(poll=timedelta(seconds=1)))


@pytest.fixture
def promoted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs each promote made ready."""
    counts: list[int] = []
    promote = SqliteStore.promote

    async def counted(reply: Reply[Promoted]) -> Promoted:
        answer = await reply
        counts.append(answer.count)
        return answer

    monkeypatch.setattr(SqliteStore, "promote", lambda store, limit: counted(promote(store, limit)))
    return counts


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
        app.close()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await is_so():
            await asyncio.sleep(0.01)


async def test_a_hungry_worker_claims_a_flood_where_it_waits(
    app: App, promoted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a fetch takes on a busy machine, it is waited for.
    monkeypatch.setattr(flood, "_PATIENCE", PATIENCE)
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
    assert sum(promoted) <= JOBS // 2, "most were not made ready first"


async def test_a_flood_that_is_not_for_this_worker_is_made_ready(app: App, promoted: list[int]) -> None:
    @app.task(queue="other")
    async def work(number: int) -> None:
        raise AssertionError("nobody serves its queue")

    async with working(app, queues=["mine"]):
        bind = work.options(delay=0.2).bind
        await app.enqueue_many_async([bind(number) for number in range(JOBS)])

        async def is_ready() -> bool:
            return await app.client_async().count(state="ready") == JOBS

        await until(is_ready)
    assert sum(promoted) == JOBS


async def test_a_flood_is_made_ready_when_the_worker_has_no_slot_free(app: App) -> None:
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


async def test_a_flood_of_retries_is_made_ready_and_runs(app: App) -> None:
    runs: Counter[int] = Counter()

    @app.task(retry="delays([1s])")
    async def work(number: int) -> None:
        runs[number] += 1
        if runs[number] == 1:
            raise ValueError("not yet")

    async with working(app):
        await app.enqueue_many_async([work.bind(number) for number in range(JOBS)])

        async def is_done() -> bool:
            return await app.client_async().count(state="succeeded") == JOBS

        await until(is_done)
    assert runs == dict.fromkeys(range(JOBS), 2)
