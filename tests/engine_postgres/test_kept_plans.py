"""The short way of statements whose plans are kept: deadlines, interrupts, late errors and large values on it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from tests.conformance.scene import a_want
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres

from perdure.engines.postgres.connection import LoopConnection
from perdure.engines.postgres.pool import ThreadPool
from perdure.engines.postgres.sql import statement
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import EngineBusy, EngineError
from perdure.store.reads import JobFilter

LARGE = b'{"args":["' + b"x" * 250_000 + b'"]}'
REFUSE_LATE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'too late'; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON jobs DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION refuse();
"""


@contextmanager
def locked(dsn: str) -> Iterator[None]:
    """While this lasts nobody gets at the jobs."""
    with psycopg.connect(dsn) as connection:
        connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()


def waiting(name: str) -> int:
    """How many statements of a store wait for a lock."""
    with psycopg.connect(postgres.shared_server()) as operator:
        query = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
        row = operator.execute(query, [name]).fetchone()
        assert row is not None
        return int(row[0])


def interrupt(name: str) -> None:
    """Press Ctrl-C once a statement of a store waits."""
    until(lambda: waiting(name) == 1)
    os.kill(os.getpid(), signal.SIGINT)


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it never came about")


def test_a_statement_goes_back_to_the_connection_that_has_its_plan(store: PostgresStore) -> None:
    pool = ThreadPool(store._address, 4)
    first, second, plain = pool.lend("commit"), pool.lend("fetch"), pool.lend()
    for connection, name in ((first, "settings"), (second, "now")):
        assert connection.plans is not None
        found = statement(name, store._address.schema)
        connection.ask(connection.plans, found, found.values({"now": None}))
    for connection in (first, second, plain):
        pool.give_back(connection)
    assert pool.lend("settings") is first
    assert pool.lend("settings") is second, "where all that have it are busy another one makes it"
    third = pool.lend("settings")
    assert third not in (first, second, plain), "one that keeps no plans is not asked to"
    for connection in (third, second, first):
        pool.give_back(connection)
    assert pool.lend("promote") is first, "where none has it the last one given back makes it"
    assert pool.lend() is plain
    pool.give_back(first)
    pool.give_back(plain)
    pool.close()


def test_what_waits_for_a_lock_ends_by_its_deadline(open_one: Callable[..., PostgresStore], dsn: str) -> None:
    scene = RealScene(open_one(timeout="0.3"))
    scene.enqueue()
    with locked(dsn), pytest.raises(EngineBusy, match="took too long"):
        scene.enqueue()
    scene.enqueue()


def test_a_transaction_that_waits_for_a_lock_ends_by_its_deadline(
    open_one: Callable[..., PostgresStore], dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_one(timeout="0.3")
    scene = RealScene(store)
    worker, job_id = scene.worker(), scene.enqueue()
    wants = [a_want(), a_want("other")]
    with locked(dsn), pytest.raises(EngineBusy, match="took too long"):
        store.fetch(worker, wants, 10).wait()
    assert [job.id for job in store.fetch(worker, wants, 10).wait().jobs] == [job_id]
    assert caplog.text == "", "the driver found nothing to complain about"


def test_a_transaction_that_waits_for_a_lock_ends_by_an_interrupt(
    open_one: Callable[..., PostgresStore], dsn: str, schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_one(application_name=schema)
    scene = RealScene(store)
    worker, job_id = scene.worker(), scene.enqueue()
    wants = [a_want(), a_want("other")]
    with locked(dsn):
        thread = threading.Thread(target=interrupt, args=[schema])
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            store.fetch(worker, wants, 10).wait()
        thread.join()
    assert [job.id for job in store.fetch(worker, wants, 10).wait().jobs] == [job_id]
    assert caplog.text == "", "the driver found nothing to complain about"


async def test_what_waits_for_a_lock_on_a_loop_ends_by_its_deadline(
    open_one: Callable[..., PostgresStore], dsn: str
) -> None:
    store = open_one(timeout="0.3")
    scene = RealScene(store)
    await store.enqueue([scene.new_job()])
    with locked(dsn), pytest.raises(EngineBusy, match="took too long"):
        await store.enqueue([scene.new_job()])
    await store.enqueue([scene.new_job()])


def test_an_interrupt_ends_a_call_here_and_in_the_server(
    open_one: Callable[..., PostgresStore], dsn: str, schema: str
) -> None:
    scene = RealScene(open_one(application_name=schema, connections="4", listen="false"))
    scene.enqueue()

    with locked(dsn):
        # More often than there are places for calls: each gives its own back.
        for _ in range(5):
            thread = threading.Thread(target=interrupt, args=[schema])
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                scene.enqueue()
            thread.join()
            until(lambda: waiting(schema) == 0)
    scene.enqueue()
    assert scene.store.count(JobFilter()).wait() == 2


async def test_a_call_on_a_loop_that_is_cancelled_is_cancelled_in_the_server(
    open_one: Callable[..., PostgresStore], dsn: str, schema: str
) -> None:
    store = open_one(application_name=schema, listen="false")
    scene = RealScene(store)
    await store.enqueue([scene.new_job()])
    with locked(dsn):
        before = asyncio.all_tasks()
        asked = asyncio.ensure_future(store.enqueue([scene.new_job()]))
        await asyncio.to_thread(until, lambda: waiting(schema) == 1)
        for task in asyncio.all_tasks() - before:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await asyncio.to_thread(until, lambda: waiting(schema) == 0)
    await store.enqueue([scene.new_job()])
    assert await store.count(JobFilter()) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_after_the_rows_of_a_statement_is_an_error(
    scene: RealScene, caller: psycopg.Connection[Any], count: int
) -> None:
    worker = scene.worker()
    job_id = scene.enqueue()
    caller.execute(REFUSE_LATE)
    caller.commit()
    with pytest.raises(EngineError, match="too late"):
        scene.store.enqueue([scene.new_job() for _ in range(count)]).wait()
    with pytest.raises(EngineError, match="too late"):
        scene.fetch(worker)
    assert scene.store.count(JobFilter()).wait() == 1
    assert scene.get(job_id).state == "ready"


def test_a_job_that_exists_is_not_made_again_and_its_id_stands(scene: RealScene) -> None:
    job = scene.new_job()
    for _ in range(3):
        assert scene.store.enqueue([job]).wait() == [job.id]
    assert scene.store.count(JobFilter()).wait() == 1


def test_more_than_a_socket_takes_at_once_is_sent(scene: RealScene) -> None:
    jobs = [scene.new_job(args=LARGE) for _ in range(40)]
    scene.store.enqueue(jobs).wait()
    found = scene.fetch(scene.worker(), limit=40)
    assert [job.args for job in found] == [LARGE] * 40


async def test_more_than_a_socket_takes_at_once_is_sent_on_a_loop(scene: RealScene) -> None:
    await scene.store.enqueue([scene.new_job(args=LARGE) for _ in range(40)])
    assert await scene.store.count(JobFilter()) == 40


@pytest.mark.parametrize("name", ['a "quoted" one', "back\\slash", "{braces},", "nul\0", "", "NULL"])
def test_names_of_queues_survive_a_fetch_from_several(scene: RealScene, name: str) -> None:
    worker = scene.worker()
    job_id = scene.enqueue(queue=name)
    wants = [a_want(name), a_want("other")]
    fetched = scene.store.fetch(worker, wants, 10).wait()
    assert [(job.id, job.queue) for job in fetched.jobs] == [(job_id, name)]


async def test_an_answer_of_many_readings_is_one_wait(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = RealScene(store)
    worker = scene.worker()
    await store.enqueue([scene.new_job(args=LARGE) for _ in range(20)])
    waits: list[int] = []
    wait_for = LoopConnection._wait_for

    async def counted(connection: LoopConnection, wanted: int) -> None:
        waits.append(wanted)
        await wait_for(connection, wanted)

    await store.fetch(worker, [a_want()], 1)
    monkeypatch.setattr(LoopConnection, "_wait_for", counted)
    assert len((await store.fetch(worker, [a_want()], 19)).jobs) == 19
    # One for the rows, and one for the word that they are durable, unless that came with them.
    assert 1 <= len(waits) <= 2
