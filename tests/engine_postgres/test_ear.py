"""Who subscribes on an event loop hears there: of others' jobs, through broken connections, and until it stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import psycopg
from tests.engine_postgres.scene import RealScene
from tests.engine_postgres.test_wakeups import listeners
from tests.servers import postgres

from perdure.engines.postgres.store import PostgresStore

PATIENCE = 60.0


class Ear:
    """A subscriber on the running loop that counts and can be waited for."""

    def __init__(self, store: PostgresStore) -> None:
        self.count = 0
        self.threads: set[threading.Thread] = set()
        self._heard = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.stop = store.wakeups.subscribe(self._hear)

    def _hear(self) -> None:
        self.count += 1
        self.threads.add(threading.current_thread())
        self._loop.call_soon_threadsafe(self._heard.set)

    async def hears(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._heard.wait()
        self._heard.clear()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.01)


async def test_jobs_of_others_are_heard_on_the_loop_itself(open_one: Callable[..., PostgresStore]) -> None:
    ear, other = Ear(open_one()), RealScene(open_one())
    await ear.hears()  # listening begins with a hint: something may have been missed
    for _ in range(3):
        await asyncio.to_thread(other.enqueue)
        await ear.hears()
    assert ear.threads == {threading.current_thread()}
    ear.stop()


async def test_a_listener_whose_session_was_killed_listens_again(
    open_one: Callable[..., PostgresStore], schema: str
) -> None:
    name = f"ear {schema}"
    ear, other = Ear(open_one(application_name=name)), RealScene(open_one())
    await ear.hears()
    (pid,) = listeners(name)
    with psycopg.connect(postgres.shared_server(), autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    # It wakes its subscribers once it listens again: what it missed may have been for them.
    await ear.hears()
    assert listeners(name) != [pid]
    await asyncio.to_thread(other.enqueue)
    await ear.hears()
    ear.stop()


async def test_the_subscribers_of_a_loop_share_a_connection_which_goes_with_the_last(
    open_one: Callable[..., PostgresStore], schema: str
) -> None:
    name = f"ear {schema}"
    store, other = open_one(application_name=name), RealScene(open_one())
    first = Ear(store)
    await first.hears()
    second = Ear(store)
    assert len(listeners(name)) == 1
    first.stop()
    first.stop()
    count = first.count
    await asyncio.to_thread(other.enqueue)
    await second.hears()
    assert first.count == count
    second.stop()
    await until(lambda: listeners(name) == [])
    third = Ear(store)
    await third.hears()
    assert len(listeners(name)) == 1
    third.stop()


async def test_of_many_jobs_of_its_own_process_the_last_is_heard_and_not_each(
    open_one: Callable[..., PostgresStore],
) -> None:
    store = open_one()
    ear = Ear(store)
    await ear.hears()
    before = ear.count
    for _ in range(200):
        store.wakeups.hint(is_sent=True)
    heard = ear.count
    assert heard - before < 100
    await until(lambda: ear.count > heard)
    ear.stop()


async def test_a_store_that_is_closed_listens_no_more(open_one: Callable[..., PostgresStore], schema: str) -> None:
    name = f"ear {schema}"
    store = open_one(application_name=name)
    ear = Ear(store)
    await ear.hears()
    await asyncio.to_thread(store.close)
    await until(lambda: listeners(name) == [])
    ear.stop()


def test_a_loop_that_ended_without_a_word_leaves_nothing_behind(
    open_one: Callable[..., PostgresStore], schema: str
) -> None:
    name = f"ear {schema}"
    store, other = open_one(application_name=name), RealScene(open_one())

    async def listen() -> Ear:
        ear = Ear(store)
        await ear.hears()
        return ear

    asyncio.run(listen())
    assert listeners(name) == []
    other.enqueue()
    ear = asyncio.run(listen())
    ear.stop()
