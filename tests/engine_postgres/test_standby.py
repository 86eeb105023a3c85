"""Standing by: an idle worker's fetch goes out with the hint, on the connection that brought it, or as any other."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
import pytest
from tests.conformance.scene import a_want
from tests.conformance.standing import LONG, PATIENCE, answer, claimed, until
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres

from perdure import App, Settings
from perdure.engines.postgres.connection import LoopConnection
from perdure.engines.postgres.prepared_statements import PreparedStatements
from perdure.engines.postgres.sql import Statement
from perdure.engines.postgres.standby import PostgresStandby
from perdure.engines.postgres.store import PostgresStore
from perdure.engines.postgres.verb import Row
from perdure.errors import LeaseLost
from perdure.model.job import WorkerId
from perdure.runtime.membership import is_on, on_loop
from perdure.store.jobs import Fetched, Want
from perdure.store.standby import StandbyStore

T = TypeVar("T")


class Standing:
    """Workers of one store that stand by on the running loop, and are told of hints as a fetcher tells them."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.scene = RealScene(store)
        self.standbys: list[PostgresStandby] = []
        loop = asyncio.get_running_loop()
        self.stop = store.wakeups.subscribe(lambda: self.hint() if is_on(loop) else on_loop(loop, self.hint))

    async def listens(self) -> None:
        await until(lambda: self.store.can_stand_by)

    async def begin(
        self, name: str, *wants: Want, limit: int = 10, patience: timedelta = LONG
    ) -> asyncio.Task[Fetched | None]:
        worker = await asyncio.to_thread(self.scene.worker, name)
        return await self.wait(worker, *wants, limit=limit, patience=patience)

    async def wait(
        self, worker: WorkerId, *wants: Want, limit: int = 10, patience: timedelta = LONG
    ) -> asyncio.Task[Fetched | None]:
        standby = self.store.stand_by(worker, wants or (a_want(),), limit, patience)
        self.standbys.append(standby)
        task = asyncio.ensure_future(answer(standby))
        await asyncio.sleep(0)
        return task

    def hint(self) -> None:
        for standby in self.standbys:
            standby.hint()


async def seen(condition: Callable[[], T]) -> T:
    """What is found in the server once there is something, looked for beside the loop."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await asyncio.to_thread(condition)):
            await asyncio.sleep(0.005)
        return found


def sessions(name: str, query: str) -> list[int]:
    """The server's processes of a store whose last statement was such a one."""
    with psycopg.connect(postgres.shared_server()) as operator:
        asked = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND query LIKE %s"
        return [pid for (pid,) in operator.execute(asked, [name, query]).fetchall()]


def kill(pid: int) -> None:
    with psycopg.connect(postgres.shared_server(), autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


@pytest.fixture
async def standing(open_one: Callable[..., PostgresStore], schema: str) -> AsyncIterator[Standing]:
    standing = Standing(open_one(application_name=f"standing {schema}"))
    await standing.listens()
    yield standing
    standing.stop()


async def test_a_job_of_others_is_claimed_on_the_connection_that_brought_the_hint(
    standing: Standing, open_one: Callable[..., PostgresStore], schema: str
) -> None:
    other = RealScene(open_one())
    (listener,) = await asyncio.to_thread(sessions, f"standing {schema}", "LISTEN %")
    for attempt in range(3):
        task = await standing.begin(f"w{attempt}")
        job_id = await asyncio.to_thread(other.enqueue)
        (job,) = await claimed(task)
        assert (job.id, job.state, job.attempt, job.worker) == (job_id, "running", 1, f"w{attempt}")
        assert await asyncio.to_thread(sessions, f"standing {schema}", "WITH offered%") == [listener]


async def test_a_job_of_its_own_process_calls_it_too(standing: Standing) -> None:
    task = await standing.begin("one")
    job_id = await asyncio.to_thread(standing.scene.enqueue)
    assert [job.id for job in await claimed(task)] == [job_id]


async def test_one_hint_is_one_fetch_and_what_comes_later_is_for_others(standing: Standing) -> None:
    task = await standing.begin("one")
    (standby,) = standing.standbys
    assert standby.hint()
    assert not standby.hint()
    assert await claimed(task) == []
    assert not standby.hint()


async def test_several_queues_and_limits_are_fetched_as_always(standing: Standing) -> None:
    jobs = [standing.scene.new_job(queue=queue) for queue in ("mail", "mail", "news")]
    task = await standing.begin("one", a_want("mail", concurrency=1), a_want("news"))
    await asyncio.to_thread(standing.store.enqueue(jobs).wait)
    assert [job.queue for job in await claimed(task)] == ["mail", "news"]


async def test_two_on_one_loop_are_both_answered(standing: Standing) -> None:
    tasks = [await standing.begin(name, limit=1) for name in ("one", "two")]
    jobs = [standing.scene.new_job() for _ in range(2)]
    await asyncio.to_thread(standing.store.enqueue(jobs).wait)
    assert sorted([job.id for task in tasks for job in await claimed(task)]) == sorted(job.id for job in jobs)
    await until(lambda: standing.store.can_stand_by)


async def test_patience_ends_with_a_fetch(standing: Standing) -> None:
    job_id = await asyncio.to_thread(standing.scene.enqueue)
    began = time.monotonic()
    task = await standing.begin("one", patience=timedelta(seconds=0.2))
    assert [job.id for job in await claimed(task)] == [job_id]
    assert time.monotonic() - began >= 0.19


async def test_a_standby_that_is_ended_is_answered_soon(standing: Standing) -> None:
    worker = await asyncio.to_thread(standing.scene.worker, "one")
    for _ in range(3):
        task = await standing.wait(worker)
        standing.standbys[-1].end()
        assert await claimed(task) == []


async def test_a_worker_without_a_lease_is_refused(standing: Standing) -> None:
    task = await standing.wait(WorkerId("nobody"), patience=timedelta(0))
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(task, PATIENCE)
    assert standing.store.can_stand_by


async def test_a_connection_that_breaks_under_the_fetch_leaves_it_to_the_next_and_is_mended(
    standing: Standing, dsn: str, schema: str
) -> None:
    name = f"standing {schema}"
    task = await standing.begin("one")
    with psycopg.connect(dsn) as operator:
        operator.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        standing.hint()
        found = await seen(lambda: sessions(name, "WITH offered%"))
        assert not standing.store.can_stand_by, "what is lent cannot be lent again"
        await asyncio.to_thread(kill, found[0])
        assert await asyncio.wait_for(task, PATIENCE) is None
    await standing.listens()
    job_id = await asyncio.to_thread(standing.scene.enqueue)
    assert [job.id for job in await claimed(await standing.begin("two", patience=timedelta(0)))] == [job_id]


async def test_who_stops_listening_in_the_middle_of_a_fetch_gets_its_answer_and_no_connection_stays(
    standing: Standing, dsn: str, schema: str
) -> None:
    name = f"standing {schema}"
    job_id = await asyncio.to_thread(standing.scene.enqueue)
    task = await standing.begin("one")
    with psycopg.connect(dsn) as operator:
        operator.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        standing.hint()
        found = await seen(lambda: sessions(name, "WITH offered%"))
        standing.stop()
        await asyncio.sleep(0.02)
    assert [job.id for job in await claimed(task)] == [job_id]
    await seen(lambda: found[0] not in sessions(name, "%"))


async def test_a_hint_that_comes_with_the_end_of_the_session_leaves_it_to_the_next_fetch(
    standing: Standing, schema: str
) -> None:
    task = await standing.begin("one")
    (listener,) = await asyncio.to_thread(sessions, f"standing {schema}", "LISTEN %")
    # Without a turn of the loop in between, so that nobody here has seen the end of it.
    kill(listener)
    standing.hint()
    assert await asyncio.wait_for(task, PATIENCE) is None
    await standing.listens()
    job_id = await asyncio.to_thread(standing.scene.enqueue)
    assert [job.id for job in await claimed(await standing.begin("two", patience=timedelta(0)))] == [job_id]


def test_outside_of_an_event_loop_nobody_stands_by(store: PostgresStore) -> None:
    assert isinstance(store, StandbyStore)
    assert not store.can_stand_by


async def test_where_nobody_listens_nobody_stands_by(open_one: Callable[..., PostgresStore]) -> None:
    for options in ({"listen": "false"}, {"pooler": "true"}, {"connections": "3"}):
        store = open_one(**options)
        assert isinstance(store, StandbyStore)
        stop = store.wakeups.subscribe(lambda: None)
        await asyncio.sleep(0.05)
        assert not store.can_stand_by
        stop()


@asynccontextmanager
async def working(app: App) -> AsyncIterator[Callable[[], None]]:
    """A worker that works meanwhile; gives the way to stop it gently."""
    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    try:
        yield worker.stop
    finally:
        worker.stop()
        worker.stop()
        await asyncio.wait_for(running, PATIENCE)
        app.close()


async def test_an_idle_worker_fetches_once_for_each_job_however_rarely_it_polls(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, other = App(url, settings=Settings(poll=timedelta(hours=1))), App(url)
    started, asked = asyncio.Event(), Counter[str]()
    ask = LoopConnection.ask

    async def counted(
        connection: LoopConnection, plans: PreparedStatements, found: Statement, values: Sequence[Any]
    ) -> list[Row]:
        asked[found.name] += 1
        return await ask(connection, plans, found, values)

    def fetches() -> int:
        # On a busy machine a fetch may count as slow; the next one then measures it.
        return asked["fetch"] + asked["fetch_ranges"]

    monkeypatch.setattr(LoopConnection, "ask", counted)

    @app.task
    async def work() -> None:
        started.set()

    async with working(app):
        await until(lambda: asked["settings"] > 0 and asked["fetch"] > 0 and can_stand_by(app))
        await asyncio.sleep(0.1)
        before = fetches()
        for _ in range(5):
            started.clear()
            await asyncio.to_thread(other.enqueue_named, "work", [], {})
            await asyncio.wait_for(started.wait(), PATIENCE)
            await asyncio.sleep(0.05)  # time for a fetch too many, and to be idle again
        assert fetches() == before + 5
    other.close()


def can_stand_by(app: App) -> bool:
    assert isinstance(app.store, PostgresStore)
    return app.store.can_stand_by
