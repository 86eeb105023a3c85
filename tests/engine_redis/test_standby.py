"""Standing by: one idle worker is called for what became ready, claims it in the same step, and can be let go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from datetime import timedelta

import pytest
import redis
from tests.conformance.scene import SECOND, Scene, a_want, failure, success
from tests.conformance.standing import LONG, PATIENCE, answer, claimed, until
from tests.servers.redis import RedisServer

from perdure import App, Settings
from perdure.engines.opener import open_store
from perdure.engines.redis.standby import RedisStandby
from perdure.engines.redis.store import RedisStore
from perdure.errors import LeaseLost
from perdure.model.job import WorkerId
from perdure.model.queue.settings import QueueSettings
from perdure.store.jobs import Fetched
from perdure.store.reads import JobFilter
from perdure.store.standby import StandbyStore
from perdure.system.clock import VirtualClock


class Standing:
    """Workers of a store that stand by."""

    def __init__(self, scene: Scene, client: redis.Redis) -> None:
        assert isinstance(scene.store, RedisStore)
        self.store = scene.store
        self.scene = scene
        self.client = client

    async def begin(
        self, name: str, *queues: str, limit: int = 10, patience: timedelta = LONG
    ) -> asyncio.Task[Fetched | None]:
        """A worker that stands by, and is seen to by the server."""
        worker = await asyncio.to_thread(self.scene.worker, name)
        before = self.blocked()
        standby = self.make(worker, *queues, limit=limit, patience=patience)
        task = asyncio.ensure_future(answer(standby))
        task.set_name(name)
        await until(lambda: self.blocked() == before + 1 or task.done())
        return task

    def make(self, worker: WorkerId, *queues: str, limit: int = 10, patience: timedelta = LONG) -> RedisStandby:
        wants = [a_want(queue) for queue in queues or ("mail",)]
        return self.store.stand_by(worker, wants, limit, patience)

    def blocked(self) -> int:
        return sum("b" in each["flags"] for each in self.client.client_list())


@pytest.fixture
def standing(scene: Scene, client: redis.Redis) -> Standing:
    return Standing(scene, client)


def enqueue(scene: Scene, **changes: object) -> asyncio.Future[str]:
    return asyncio.ensure_future(asyncio.to_thread(scene.enqueue, **changes))


async def test_a_worker_that_stands_by_is_given_a_job_as_soon_as_it_is_made(standing: Standing, scene: Scene) -> None:
    task = await standing.begin("one")
    job_id = await enqueue(scene)
    (job,) = await claimed(task)
    assert (job.id, job.state, job.attempt, job.worker) == (job_id, "running", 1, "one")
    assert standing.store.get([job.id]).wait()[0].worker == "one"


async def test_what_was_ready_before_is_given_at_once(standing: Standing, scene: Scene) -> None:
    job_id = await enqueue(scene)
    assert [job.id for job in await claimed(await standing.begin("one"))] == [job_id]


async def test_one_job_calls_one_of_many(standing: Standing, scene: Scene) -> None:
    tasks = [await standing.begin(name) for name in ("one", "two", "three")]
    await enqueue(scene)
    await until(lambda: sum(task.done() for task in tasks) == 1)
    assert len(await claimed(next(task for task in tasks if task.done()))) == 1
    assert standing.blocked() == 2
    await enqueue(scene)
    await enqueue(scene)
    assert [len(await claimed(task)) for task in tasks] == [1, 1, 1]


async def test_a_batch_that_is_too_large_for_one_calls_the_next(standing: Standing, scene: Scene) -> None:
    tasks = [await standing.begin(name, limit=2) for name in ("one", "two", "three")]
    await asyncio.to_thread(scene.store.enqueue([scene.new_job() for _ in range(5)]).wait)
    assert [len(await claimed(task)) for task in tasks] == [2, 2, 1]


async def test_a_queue_that_was_not_reached_calls_the_next(standing: Standing, scene: Scene) -> None:
    first = await standing.begin("one", "mail", "news", limit=1)
    second = await standing.begin("two", "mail", "news", limit=1)
    jobs = [scene.new_job(queue="mail"), scene.new_job(queue="news")]
    await asyncio.to_thread(scene.store.enqueue(jobs).wait)
    # Each has one of them; of two bells in one step either may be the first to be heard.
    got = [[job.queue for job in await claimed(task)] for task in (first, second)]
    assert sorted(got) == [["mail"], ["news"]]


async def test_a_retry_and_a_promoted_job_call_too(standing: Standing, scene: Scene, clock: VirtualClock) -> None:
    held = await asyncio.to_thread(scene.running)
    task = await standing.begin("one")
    await asyncio.to_thread(scene.end, held, failure(held, state="ready", delay=0 * SECOND))
    assert [job.attempt for job in await claimed(task)] == [2]
    await enqueue(scene, delay=SECOND)
    task = await standing.begin("two")
    clock.advance(2 * SECOND)
    await asyncio.to_thread(scene.store.promote(10).wait)
    assert len(await claimed(task)) == 1


async def test_a_queue_that_goes_on_calls_for_what_waits_in_it(standing: Standing, scene: Scene) -> None:
    await asyncio.to_thread(scene.store.pause("mail", None).wait)
    await enqueue(scene)
    # The call of the job itself finds the queue paused, and is not repeated.
    assert await claimed(await standing.begin("one", patience=timedelta(seconds=0.05))) == []
    task = await standing.begin("one")
    await asyncio.to_thread(scene.store.resume("mail").wait)
    assert len(await claimed(task)) == 1


async def test_patience_ends_with_a_fetch(standing: Standing) -> None:
    began = time.monotonic()
    assert await claimed(await standing.begin("one", patience=timedelta(seconds=0.2))) == []
    assert time.monotonic() - began >= 0.19


async def test_a_standby_that_is_ended_is_answered_soon(standing: Standing, scene: Scene) -> None:
    worker = await asyncio.to_thread(scene.worker, "one")
    for pause in (0.0, 0.0, 0.1):
        standby = standing.make(worker)
        task = asyncio.ensure_future(answer(standby))
        await asyncio.sleep(pause)
        standby.end()
        assert await claimed(task) == []


async def test_a_worker_without_a_lease_is_refused(standing: Standing, scene: Scene, clock: VirtualClock) -> None:
    task = await standing.begin("one")
    clock.advance(timedelta(days=1))
    await scene.store.reap(0)
    task.cancel()
    late = standing.make(WorkerId("one"), patience=timedelta(seconds=0.05))
    with pytest.raises(LeaseLost):
        await late


async def test_a_broken_connection_leaves_it_to_the_next_fetch(standing: Standing, client: redis.Redis) -> None:
    task = await standing.begin("one")
    for each in client.client_list():
        if "b" in each["flags"]:
            client.client_kill_filter(_id=each["id"])
    assert await asyncio.wait_for(task, PATIENCE) is None
    assert standing.store.can_stand_by


async def test_a_store_that_is_closed_lets_those_go_that_stand_by(standing: Standing) -> None:
    task = await standing.begin("one")
    began = time.monotonic()
    standing.store.close()
    assert await claimed(task) == []
    assert time.monotonic() - began < 10


async def test_a_server_that_does_not_know_the_script_is_told_it(
    standing: Standing, scene: Scene, client: redis.Redis
) -> None:
    task = await standing.begin("one")
    client.script_flush()
    await enqueue(scene)
    assert len(await claimed(task)) == 1


async def test_a_server_that_refuses_to_wait_is_asked_once(server: RedisServer) -> None:
    server.ask("ACL", "SETUSER", "clerk", "on", ">secret", "~*", "&*", "+@all", "-blpop")
    clock = VirtualClock()
    place = server.url.replace("redis://", "redis://clerk:secret@")
    with closing(open_store(place, clock=clock)) as store, server.client() as client:
        scene = Scene(store, clock)
        standing = Standing(scene, client)
        assert isinstance(store, StandbyStore)
        assert store.can_stand_by
        await enqueue(scene)
        worker = await asyncio.to_thread(scene.worker)
        assert len(await claimed(asyncio.ensure_future(answer(standing.make(worker))))) == 1
        assert not store.can_stand_by


def test_where_nobody_is_told_nobody_stands_by(open_one: Callable[..., RedisStore], url: str) -> None:
    assert not open_one(f"{url}&listen=false").can_stand_by


def test_what_is_taken_out_of_line_calls_nobody(scene: Scene, client: redis.Redis, tag: str) -> None:
    job_id = scene.enqueue()
    assert client.llen(f"{tag}:bell:mail") == 1
    scene.store.cancel([job_id], "unwanted").wait()
    assert not client.exists(f"{tag}:bell:mail")
    scene.enqueue()
    scene.enqueue()
    worker = scene.worker()
    scene.fetch(worker, limit=1)
    assert client.llen(f"{tag}:bell:mail") == 1
    (job,) = scene.fetch(worker)
    assert not client.exists(f"{tag}:bell:mail")
    scene.end(job, success(job))


def test_a_bell_that_is_something_else_costs_nothing_but_the_call(scene: Scene, client: redis.Redis, tag: str) -> None:
    client.set(f"{tag}:bell:mail", "mine")
    scene.enqueue()
    client.delete(f"{tag}:bell:mail")
    assert len(scene.fetch(scene.worker())) == 1


@asynccontextmanager
async def working(app: App) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A worker that works meanwhile; gives the way to stop it."""
    worker = app.make_worker()
    running = asyncio.create_task(worker.run())

    async def stop() -> None:
        worker.stop()
        worker.stop()
        await running

    try:
        yield stop
    finally:
        if not running.done():
            await stop()
        app.close()


async def test_a_worker_stands_by_exactly_while_it_holds_nothing(url: str, standing: Standing) -> None:
    app = App(url, settings=Settings(poll=LONG))
    gate, started = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        started.set()
        await gate.wait()

    async with working(app) as stop:
        await until(lambda: standing.blocked() == 1)
        await work.enqueue_async()
        await asyncio.wait_for(started.wait(), PATIENCE)
        assert standing.blocked() == 0
        started.clear()
        # A busy worker is told by a hint, and fetches.
        await work.enqueue_async()
        await asyncio.wait_for(started.wait(), PATIENCE)
        gate.set()
        await until(lambda: standing.blocked() == 1)
        began = time.monotonic()
        await stop()
        assert time.monotonic() - began < 10, "a worker that stands by is stopped as soon as any other"


async def test_a_worker_that_stands_by_follows_its_queues_settings(url: str, standing: Standing) -> None:
    app = App(url, settings=Settings(poll=LONG))
    gate = asyncio.Event()
    started: list[int] = []

    @app.task
    async def work(number: int) -> None:
        started.append(number)
        await gate.wait()

    async with working(app):
        await until(lambda: standing.blocked() == 1)
        asked = blpops(standing)
        await app.store.configure("default", QueueSettings(concurrency=1))
        await until(lambda: blpops(standing) > asked)
        await app.enqueue_many_async([work.bind(number) for number in range(5)])
        await until(lambda: bool(started))
        await until(lambda: len(standing.store.list(JobFilter(state="ready"), limit=10).wait()) == 4)
        gate.set()
        await until(lambda: len(started) == 5)


def blpops(standing: Standing) -> int:
    return int(standing.client.info("commandstats")["cmdstat_blpop"]["calls"])
