"""Workers on a store with records that they cannot read, and workers that do not know each other's tasks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conformance.conftest import Engine
from tests.conformance.scene import SECOND, Scene, failure
from tests.servers.damage import Damager

from perdure import App, Settings
from perdure.engines.set_aside import forget_named
from perdure.model.queue.settings import QueueSettings
from perdure.system.clock import SystemClock

PATIENCE = 60.0


@pytest.fixture
def apps(engine: Engine, tmp_path: Path) -> AsyncIterator[Callable[[], App]]:
    """Makes apps on one store, as the processes of several versions of a program have them."""
    if engine.make_damager is None:
        pytest.skip("the store is private to whoever opened it")
    url, made = engine.make_url(tmp_path), []
    forget_named()

    def make() -> App:
        made.append(App(url, settings=Settings(poll=timedelta(seconds=1)), auto_migrate=True))
        return made[-1]

    yield make
    for app in made:
        app.close()


@pytest.fixture
def damager(engine: Engine, apps: Callable[[], App], tmp_path: Path) -> AsyncIterator[Damager]:
    assert engine.make_damager is not None
    assert apps().store is not None
    made = engine.make_damager(tmp_path)
    yield made
    made.close()


@asynccontextmanager
async def working(app: App, queues: Sequence[str] | None = None, concurrency: int = 4) -> AsyncIterator[None]:
    worker = app.make_worker(queues, concurrency)
    running = asyncio.create_task(worker.run())
    try:
        yield
        assert not running.done(), "the worker goes on"
    finally:
        worker.stop()
        worker.stop()
        await asyncio.wait_for(running, PATIENCE)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await is_so():
            await asyncio.sleep(0.01)


async def test_a_worker_goes_on_beside_everything_that_cannot_be_read(
    apps: Callable[[], App], damager: Damager
) -> None:
    app = apps()
    scene = Scene(app.store, SystemClock())
    done: list[int] = []

    @app.task(queue="mail")
    async def send(number: int) -> None:
        done.append(number)

    app.schedule("coded", send.bind(0), cron="0 4 * * *")
    scene.schedule("coded")
    scene.schedule("later", cron="@every 1s")
    for name in ("coded", "later"):
        damager.document(name, '{"overlap": "merge"}')
    scene.worker("other")
    damager.unreadable_worker("other")
    app.store.configure("mail", QueueSettings(concurrency=3)).wait()
    damager.unreadable_setting("mail")
    ids = [app.enqueue_named("send", [number], {}) for number in range(20)]
    damager.unreadable_job(ids[7])
    documents = [damager.record("schedule", name) for name in ("coded", "later")]
    async with working(app):

        async def is_done() -> bool:
            return len(done) >= 19

        await until(is_done)
        more = [app.enqueue_named("send", [number], {}) for number in range(100, 110)]

        async def are_more() -> bool:
            return len(done) >= 29

        await until(are_more)
    assert sorted(done) == [*(number for number in range(20) if number != 7), *range(100, 110)]
    assert [damager.record("schedule", name) for name in ("coded", "later")] == documents
    assert len(app.client().list(limit=100)) == 29 == len({*ids, *more}) - 1


async def test_jobs_of_a_task_that_others_do_not_know_are_run_by_the_worker_that_does(
    apps: Callable[[], App],
) -> None:
    old, new = apps(), apps()
    done: Counter[int] = Counter()

    @old.task(queue="mail")
    async def known() -> None: ...

    @new.task(queue="mail")
    async def work(number: int) -> None:
        done[number] += 1

    async with working(old, ["mail"], 20), working(old, ["mail", "else"], 20), working(new, ["mail", "else"], 1):
        for number in range(40):
            new.enqueue_named("work", [number], {}, queue=("mail", "else")[number % 2])

        async def is_done() -> bool:
            return len(done) == 40

        await until(is_done)
    assert set(done.values()) == {1}
    jobs = new.client().list(limit=100)
    assert {(job.state, job.failures) for job in jobs} == {("succeeded", 0)}


async def test_a_parked_job_starts_although_it_is_not_due_for_minutes(apps: Callable[[], App]) -> None:
    app = apps()
    started = asyncio.Event()

    @app.task(queue="mail")
    async def send() -> None:
        started.set()

    scene = Scene(app.store, SystemClock())
    job = scene.running(args=b'{"args":[],"kwargs":{}}')
    parked = failure(job, attempt="parked", reason="parked", lane="fresh", failures=0, delay=3600 * SECOND)
    assert scene.end(job, parked)
    async with working(app):
        await asyncio.wait_for(started.wait(), PATIENCE)


async def test_jobs_of_an_unknown_task_at_the_head_of_a_queue_keep_no_known_job_waiting(
    apps: Callable[[], App],
) -> None:
    app = apps()
    done = asyncio.Event()

    @app.task(queue="mail")
    async def known() -> None:
        done.set()

    scene = Scene(app.store, SystemClock())
    many = [scene.new_job(task="strange", priority=100) for _ in range(3000)]
    app.store.enqueue(many).wait()
    app.enqueue_named("known", [], {})
    async with working(app, concurrency=2):
        await asyncio.wait_for(done.wait(), PATIENCE)
        assert app.client().count(reason="parked") > 0
    assert all(job is not None and job.failures == 0 for job in app.store.get([job.id for job in many[:100]]).wait())
