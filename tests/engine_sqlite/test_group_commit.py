"""Group commit: what queues up while the writer is busy is one transaction, and a fault stays with its request."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest
from tests.conformance.scene import SECOND, Scene, ended, success
from tests.engine_sqlite.conftest import Open

from perdure.engines.sqlite.enqueue import Enqueue
from perdure.engines.sqlite.request import Request
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import EngineError, LeaseLost
from perdure.model.job import JobId, WorkerId
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


async def at_once(outsider: sqlite3.Connection, *replies: object) -> list[object]:
    """Ask all while another program keeps the writer waiting, so that they queue up."""
    outsider.execute("BEGIN IMMEDIATE")

    async def ask(reply: object) -> object:
        return await reply  # type: ignore[misc]

    tasks = [asyncio.ensure_future(ask(reply)) for reply in replies]
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    outsider.execute("COMMIT")
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_queues_up_takes_few_transactions(
    scene: Scene, store: SqliteStore, outsider: sqlite3.Connection
) -> None:
    before = store.transactor.commits
    await at_once(outsider, *(store.enqueue([scene.new_job()]) for _ in range(200)))
    assert store.transactor.commits - before <= 2
    assert await store.count(JobFilter()) == 200


async def test_a_batch_is_bounded(scene: Scene, store: SqliteStore, outsider: sqlite3.Connection) -> None:
    before = store.transactor.commits
    await at_once(outsider, *(store.enqueue([scene.new_job()]) for _ in range(600)))
    assert 3 <= store.transactor.commits - before <= 4
    assert await store.count(JobFilter()) == 600


async def test_a_fault_stays_with_its_request(scene: Scene, store: SqliteStore, outsider: sqlite3.Connection) -> None:
    good = [scene.new_job() for _ in range(3)]
    answers = await at_once(
        outsider,
        store.enqueue([scene.new_job()]),
        store.enqueue([good[0]]),
        store.enqueue([scene.new_job(priority=1000)]),
        store.enqueue([good[1]]),
        store.beat(WorkerId("stranger"), SECOND),
        store.enqueue([good[2]]),
    )
    assert answers[1] == [good[0].id]
    assert isinstance(answers[2], EngineError)
    assert answers[3] == [good[1].id]
    assert isinstance(answers[4], LeaseLost)
    assert answers[5] == [good[2].id]
    assert await store.count(JobFilter()) == 4


def asked(
    store: SqliteStore, scene: Scene, count: int
) -> tuple[list[Request[list[JobId]]], list[asyncio.Future[list[JobId]]]]:
    """Requests as they reach a transactor, and what their waiters hold."""
    requests = [Request(store._writer, Enqueue([scene.new_job()])) for _ in range(count)]
    return requests, [request.expect_on_loop() for request in requests]


async def test_those_who_give_up_while_the_lock_is_waited_for_are_passed_over(
    open_file: Open, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_file(is_inline=True)
    requests, futures = asked(store, Scene(store, clock), 10)

    begin = store.transactor._begin

    def begin_late() -> None:
        for future in futures[1:6]:
            future.cancel()
        begin()

    monkeypatch.setattr(store.transactor, "_begin", begin_late)
    store.transactor.run(requests)
    await asyncio.gather(futures[0], *futures[6:])
    assert store.count(JobFilter()).wait() == 5


async def test_one_who_gives_up_just_before_the_answer_harms_nobody(open_file: Open, clock: VirtualClock) -> None:
    store = open_file(is_inline=True)
    requests, futures = asked(store, Scene(store, clock), 10)
    store.transactor.run(requests)
    futures[0].cancel()
    async with asyncio.timeout(60):
        assert len(await asyncio.gather(*futures[1:])) == 9


async def test_closing_finishes_what_was_asked(scene: Scene, store: SqliteStore, outsider: sqlite3.Connection) -> None:
    outsider.execute("BEGIN IMMEDIATE")

    async def enqueue() -> list[JobId]:
        return await store.enqueue([scene.new_job()])

    tasks = [asyncio.ensure_future(enqueue()) for _ in range(5)]
    await asyncio.sleep(0)
    closing = threading.Thread(target=store.close)
    closing.start()
    outsider.execute("COMMIT")
    answers = await asyncio.gather(*tasks)
    closing.join()
    kept = outsider.execute("SELECT id FROM perdure_jobs ORDER BY id").fetchall()
    assert kept == sorted((ids[0],) for ids in answers)


def test_an_idle_fetch_commits_nothing(scene: Scene, store: SqliteStore, outsider: sqlite3.Connection) -> None:
    worker = scene.worker()
    scene.enqueue(delay=SECOND)
    before = (store.transactor.commits, outsider.execute("PRAGMA data_version").fetchone())
    for _ in range(10):
        assert scene.fetch(worker) == []
        store.promote(10).wait()
        store.reap(10).wait()
    assert (store.transactor.commits, outsider.execute("PRAGMA data_version").fetchone()) == before


def test_an_idle_fetch_is_answered_while_others_write(
    scene: Scene, store: SqliteStore, outsider: sqlite3.Connection
) -> None:
    worker = scene.worker()
    outsider.execute("BEGIN IMMEDIATE")
    assert scene.fetch(worker) == []
    outsider.execute("COMMIT")


@pytest.mark.parametrize("count", [1, 3, 4, 5, 63, 64, 65, 255, 256, 257, 1000])
def test_batches_of_every_size_are_done_whole(scene: Scene, count: int) -> None:
    worker = scene.worker()
    jobs = [scene.new_job() for _ in range(count)]
    assert scene.store.enqueue(jobs).wait() == [job.id for job in jobs]
    claimed = scene.fetch(worker, fresh=count, retry=0, limit=count)
    assert [job.id for job in claimed] == [job.id for job in jobs]
    assert scene.store.commit([ended(job, success(job)) for job in claimed]).wait() == [True] * count
    assert scene.store.count(JobFilter(state="succeeded")).wait() == count


async def test_the_answers_of_a_batch_reach_a_loop_in_one_call(
    scene: Scene, store: SqliteStore, outsider: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    calls: list[object] = []
    call_soon_threadsafe = loop.call_soon_threadsafe

    def counted(callback: object, *args: object, **kwargs: object) -> object:
        calls.append(callback)
        return call_soon_threadsafe(callback, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    before = store.transactor.commits
    await at_once(outsider, *(store.enqueue([scene.new_job()]) for _ in range(200)))
    assert len(calls) == store.transactor.commits - before
