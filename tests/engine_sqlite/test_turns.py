"""Whose thread does a request: that of a caller who is alone, or the writer's, for all who ask at the same time."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

import pytest
from tests.conformance.scene import Scene
from tests.engine_sqlite.conftest import Open

from perdure.engines.sqlite.request import Request
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import EngineBusy, EngineError, PerdureError
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


def asking(store: SqliteStore, work: Callable[[], object]) -> Request[object]:
    """A request of the writer that does this."""
    return Request(store._writer, lambda connection, now: work())


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_caller_who_is_alone_does_its_own_request(store: SqliteStore) -> None:
    assert asking(store, threading.get_ident).wait() == threading.get_ident()


def test_one_plain_job_is_one_statement_and_anything_else_a_transaction(scene: Scene, store: SqliteStore) -> None:
    said: list[str] = []
    connection = store.transactor._connection
    connection.set_trace_callback(lambda text: said.append(text.split()[0]))
    scene.enqueue(priority=5)
    assert said == ["INSERT"]
    said.clear()
    scene.enqueue(unique="7")
    assert said == ["BEGIN", "INSERT", "COMMIT"]
    connection.set_trace_callback(None)
    assert not connection.in_transaction


def test_a_statement_that_is_refused_leaves_nothing_locked(
    scene: Scene, store: SqliteStore, outsider: sqlite3.Connection
) -> None:
    before = store.transactor.commits
    with pytest.raises(PerdureError):
        scene.enqueue(priority=101)
    outsider.execute("BEGIN IMMEDIATE")
    outsider.execute("COMMIT")
    assert store.transactor.commits == before
    assert store.count(JobFilter()).wait() == 0


async def test_what_a_loop_asks_is_done_elsewhere(store: SqliteStore) -> None:
    assert await asking(store, threading.get_ident) != threading.get_ident()


def test_those_who_come_while_a_caller_is_at_it_share_one_transaction(
    scene: Scene, store: SqliteStore, outsider: sqlite3.Connection
) -> None:
    before = store.transactor.commits
    outsider.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=scene.enqueue) for _ in range(8)]
    threads[0].start()
    until(store._writer._turn.locked)  # type: ignore[union-attr]
    for thread in threads[1:]:
        thread.start()
    until(lambda: store._writer._queue.qsize() == 6)  # type: ignore[union-attr]
    outsider.execute("COMMIT")
    for thread in threads:
        thread.join()
    assert store.transactor.commits - before == 2
    assert store.count(JobFilter()).wait() == 8


def test_after_company_is_gone_a_caller_does_its_own_requests_again(store: SqliteStore) -> None:
    store._writer._is_crowded = True  # type: ignore[union-attr]
    assert asking(store, threading.get_ident).wait() != threading.get_ident()
    # The answer comes a moment before the thread is done.
    until(lambda: not store._writer._is_crowded and not store._writer._turn.locked())  # type: ignore[union-attr]
    assert asking(store, threading.get_ident).wait() == threading.get_ident()


def test_a_call_from_inside_a_call_is_told_so_instead_of_waiting_for_ever(store: SqliteStore) -> None:
    inside = asking(store, threading.get_ident)
    with pytest.raises(EngineBusy, match="in the middle of another call"):
        asking(store, inside.wait).wait()
    assert asking(store, threading.get_ident).wait() == threading.get_ident()


def test_closing_waits_for_a_caller_at_work(open_file: Open) -> None:
    store = open_file()
    is_begun, may_end, answers = threading.Event(), threading.Event(), list[object]()

    def work() -> str:
        is_begun.set()
        may_end.wait(30)
        return "done"

    caller = threading.Thread(target=lambda: answers.append(asking(store, work).wait()))
    caller.start()
    assert is_begun.wait(30)
    closing = threading.Thread(target=store.close)
    closing.start()
    until(lambda: store._open_guard._is_shut)
    may_end.set()
    caller.join()
    closing.join()
    assert answers == ["done"]
    with pytest.raises(EngineError, match="closed"):
        asking(store, threading.get_ident).wait()


def test_who_only_ever_waits_for_its_own_calls_has_no_thread_beside_it(open_file: Open) -> None:
    before = set(threading.enumerate())
    store = open_file()
    Scene(store, VirtualClock()).enqueue()
    assert set(threading.enumerate()) == before
    store.close()


async def test_what_is_awaited_is_done_by_a_thread_that_ends_with_the_store(open_file: Open) -> None:
    before = set(threading.enumerate())
    store = open_file()
    await store.enqueue([Scene(store, VirtualClock()).new_job()])
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["perdure-sqlite-writer"]
    store.close()
    assert set(threading.enumerate()) == before
