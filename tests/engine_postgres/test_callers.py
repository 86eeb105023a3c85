"""A job enqueued, or completed, in a caller's transaction shares its fate, whatever driver the connection is of."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import asyncpg
import django
import psycopg
import pytest
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm
from django.conf import settings
from tests.conformance.scene import ended, success
from tests.engine_postgres.scene import RealScene

from perdure import App, current_job
from perdure.errors import EngineError, Unsupported
from perdure.model.job import JobId


class Blocking:
    """One kind of a connection that blocks: what to hand to Perdure, and how its transaction ends."""

    def __init__(self, handed: Any, commit: Callable[[], Any], rollback: Callable[[], Any]) -> None:
        self.handed = handed
        self.commit = commit
        self.rollback = rollback


class Awaited(Blocking):
    """The same for one that is awaited."""


def _psycopg(dsn: str) -> Iterator[Blocking]:
    with psycopg.connect(dsn) as connection:
        yield Blocking(connection, connection.commit, connection.rollback)


def _psycopg_with_rows_as_dicts(dsn: str) -> Iterator[Blocking]:
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row, cursor_factory=psycopg.ClientCursor) as connection:
        yield Blocking(connection, connection.commit, connection.rollback)


def _sqlalchemy_connection(dsn: str) -> Iterator[Blocking]:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        yield Blocking(connection, connection.commit, connection.rollback)
    engine.dispose()


def _sqlalchemy_session(dsn: str) -> Iterator[Blocking]:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with sqlalchemy.orm.Session(engine) as session:
        yield Blocking(session, session.commit, session.rollback)
    engine.dispose()


def _django(dsn: str) -> Iterator[Blocking]:
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    given = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user"),
        "PASSWORD": parts.get("password"),
        "HOST": parts.get("host"),
        "PORT": parts.get("port"),
        "OPTIONS": {"options": parts["options"]},
    }
    if not settings.configured:
        settings.configure(DATABASES={"default": given})
        django.setup()
    from django.db import connection

    connection.close()
    connection.settings_dict.update(given)
    connection.set_autocommit(False)
    yield Blocking(connection, connection.commit, connection.rollback)
    connection.close()


BLOCKING = {
    "psycopg": _psycopg,
    "psycopg with rows as dicts": _psycopg_with_rows_as_dicts,
    "SQLAlchemy connection": _sqlalchemy_connection,
    "SQLAlchemy session": _sqlalchemy_session,
    "Django": _django,
}


@contextlib.asynccontextmanager
async def _async_psycopg(dsn: str) -> AsyncIterator[Awaited]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield Awaited(connection, connection.commit, connection.rollback)


@contextlib.asynccontextmanager
async def _asyncpg(dsn: str) -> AsyncIterator[Awaited]:
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    search_path = parts["options"].removeprefix("-csearch_path=")
    connection = await asyncpg.connect(
        host=parts["host"],
        port=int(parts["port"]),
        user=parts.get("user"),
        password=parts.get("password"),
        database=parts["dbname"],
        server_settings={"search_path": search_path},
    )
    transaction = connection.transaction()
    await transaction.start()
    yield Awaited(connection, transaction.commit, transaction.rollback)
    await connection.close()


def _async_engine(dsn: str, driver: str) -> sqlalchemy.ext.asyncio.AsyncEngine:
    address, _, _ = dsn.partition("?")
    return sqlalchemy.ext.asyncio.create_async_engine(address.replace("postgresql://", f"postgresql+{driver}://"))


@contextlib.asynccontextmanager
async def _async_sqlalchemy_connection(dsn: str) -> AsyncIterator[Awaited]:
    engine = _async_engine(dsn, "asyncpg")
    async with engine.connect() as connection:
        yield Awaited(connection, connection.commit, connection.rollback)
    await engine.dispose()


@contextlib.asynccontextmanager
async def _async_sqlalchemy_session(dsn: str) -> AsyncIterator[Awaited]:
    engine = _async_engine(dsn, "psycopg")
    async with sqlalchemy.ext.asyncio.AsyncSession(engine) as session:
        yield Awaited(session, session.commit, session.rollback)
    await engine.dispose()


AWAITED = {
    "psycopg": _async_psycopg,
    "asyncpg": _asyncpg,
    "SQLAlchemy connection on asyncpg": _async_sqlalchemy_connection,
    "SQLAlchemy session on psycopg": _async_sqlalchemy_session,
}


@pytest.fixture(params=BLOCKING.values(), ids=BLOCKING)
def blocking(request: pytest.FixtureRequest, dsn: str) -> Iterator[Blocking]:
    yield from request.param(dsn)


@pytest.fixture(params=AWAITED.values(), ids=AWAITED)
async def awaited(request: pytest.FixtureRequest, dsn: str) -> AsyncIterator[Awaited]:
    async with request.param(dsn) as connection:
        yield connection


def test_a_committed_job_is_there_and_was_not_before(scene: RealScene, blocking: Blocking) -> None:
    jobs = [scene.new_job(args=b"\x00\xff"), scene.new_job(unique="7")]
    assert scene.store.enqueue_within(blocking.handed, jobs) == [job.id for job in jobs]
    assert scene.store.get([job.id for job in jobs]).wait() == [None, None]
    blocking.commit()
    assert [scene.get(job.id).args for job in jobs] == [b"\x00\xff", b"{}"]


def test_a_rolled_back_job_never_was(scene: RealScene, blocking: Blocking) -> None:
    job = scene.new_job()
    scene.store.enqueue_within(blocking.handed, [job])
    blocking.rollback()
    assert scene.store.get([job.id]).wait() == [None]


def test_a_taken_key_gives_the_holder_and_leaves_the_transaction_usable(scene: RealScene, blocking: Blocking) -> None:
    first = scene.enqueue(unique="7")
    other = scene.new_job()
    assert scene.store.enqueue_within(blocking.handed, [scene.new_job(unique="7")]) == [first]
    scene.store.enqueue_within(blocking.handed, [other])
    blocking.commit()
    assert scene.get(other.id).state == "ready"


def test_a_job_is_completed_with_the_callers_transaction(scene: RealScene, blocking: Blocking) -> None:
    job = scene.running()
    assert scene.store.complete_within(blocking.handed, ended(job, success(job)))
    assert scene.get(job.id).state == "running"
    blocking.commit()
    assert scene.get(job.id).state == "succeeded"
    assert scene.end(job, success(job)), "the ordinary commit of what was completed is a success"


def test_a_completion_that_was_rolled_back_leaves_the_job_running(scene: RealScene, blocking: Blocking) -> None:
    job = scene.running()
    scene.store.complete_within(blocking.handed, ended(job, success(job)))
    blocking.rollback()
    assert scene.get(job.id).state == "running"
    assert scene.end(job, success(job, result=b"2"))
    assert scene.get(job.id).result == b"2"


def test_a_stale_attempt_completes_nothing(scene: RealScene, blocking: Blocking) -> None:
    job = scene.running()
    assert not scene.store.complete_within(blocking.handed, ended(job, success(job), attempt=7))
    blocking.commit()
    assert scene.get(job.id).state == "running"


async def test_an_awaited_job_is_there_once_it_is_committed(scene: RealScene, awaited: Awaited) -> None:
    job = scene.new_job(unique="7")
    assert await scene.store.enqueue_within_async(awaited.handed, [job]) == [job.id]
    assert await scene.store.enqueue_within_async(awaited.handed, [scene.new_job(unique="7")]) == [job.id]
    assert await scene.store.get([job.id]) == [None]
    await awaited.commit()
    assert (await scene.store.get([job.id]))[0] is not None


async def test_an_awaited_job_that_is_rolled_back_never_was(scene: RealScene, awaited: Awaited) -> None:
    job = scene.new_job()
    await scene.store.enqueue_within_async(awaited.handed, [job])
    await awaited.rollback()
    assert await scene.store.get([job.id]) == [None]


async def test_a_job_is_completed_with_a_transaction_that_is_awaited(scene: RealScene, awaited: Awaited) -> None:
    job = scene.running()
    assert await scene.store.complete_within_async(awaited.handed, ended(job, success(job)))
    await awaited.commit()
    assert scene.get(job.id).state == "succeeded"
    assert await scene.store.commit([ended(job, success(job))]) == [True]


async def test_a_connection_that_is_awaited_is_refused_where_nobody_awaits(scene: RealScene, awaited: Awaited) -> None:
    with pytest.raises(Unsupported, match="enqueue_async"):
        scene.store.enqueue_within(awaited.handed, [scene.new_job()])


def test_a_connection_of_another_database_system_is_refused(scene: RealScene) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(Unsupported, match="sqlite"):
        scene.store.enqueue_within(connection, [scene.new_job()])
    engine.dispose()


def test_a_refusal_by_the_server_is_told_in_perdures_words(scene: RealScene, caller: psycopg.Connection[Any]) -> None:
    with pytest.raises(EngineError):
        scene.store.enqueue_within(caller, [scene.new_job(priority=1000)])
    caller.rollback()


def test_a_caller_in_autocommit_mode_makes_the_job_at_once(scene: RealScene, dsn: str) -> None:
    job = scene.new_job()
    with psycopg.connect(dsn, autocommit=True) as connection:
        scene.store.enqueue_within(connection, [job])
        assert scene.get(job.id).state == "ready"


def test_the_commit_of_a_caller_wakes_the_workers(scene: RealScene, blocking: Blocking) -> None:
    heard = threading.Event()
    stop = scene.store.wakeups.subscribe(heard.set)
    assert heard.wait(60), "listening begins with a hint: something may have been missed"
    heard.clear()
    scene.store.enqueue_within(blocking.handed, [scene.new_job()])
    assert not heard.is_set()
    blocking.commit()
    assert heard.wait(60)
    stop()


async def test_a_task_is_enqueued_with_a_connection_as_its_option(url: str, dsn: str) -> None:
    app = App(url)

    @app.task
    def send(to: str) -> None: ...

    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        job_id = await send.options(connection=connection).enqueue_async("a")
        await connection.rollback()
    with psycopg.connect(dsn) as other:
        kept = send.options(connection=other).enqueue("b")
    found = app.store.get([JobId(job_id), kept]).wait()
    assert [job is not None for job in found] == [False, True]
    app.close()


def test_a_handler_completes_its_job_beside_its_own_data(url: str, dsn: str) -> None:
    app = App(url)
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE orders (id text)")

    @app.task(max_attempts=1)
    def charge(order: str) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("INSERT INTO orders VALUES (%s)", [order])
            current_job().complete(connection, result={"order": order})

    job_id = charge.enqueue("seven")
    _work_off(app)
    (job,) = app.store.get([job_id]).wait()
    assert job is not None
    assert (job.state, job.result) == ("succeeded", b'{"order":"seven"}')
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT id FROM orders").fetchall() == [("seven",)]
    app.close()


def _work_off(app: App) -> None:
    """Let a worker run until nothing is left."""

    async def work() -> None:
        worker = app.make_worker(concurrency=2)
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(30):
            while any(queue.ready + queue.running + queue.waiting for queue in await app.store.queues()):
                await asyncio.sleep(0.02)
        worker.stop()
        await running

    asyncio.run(work())
