"""Threads that wait for a connection get one in the order in which they came, and no place is ever lost."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from perdure.engines.postgres import pool as pools
from perdure.engines.postgres.address import Address, read_address
from perdure.engines.postgres.connection import shut
from perdure.engines.postgres.fair_places import FairPlaces
from perdure.engines.postgres.fault import NoConnectionError, TookTooLongError
from perdure.engines.postgres.pool import LoopPool, ThreadPool
from perdure.engines.postgres.store import PostgresStore

PATIENCE = 60.0


@pytest.fixture
def places() -> Iterator[FairPlaces]:
    places = FairPlaces(1)
    yield places
    assert places.taken == 0, "a place was lost"
    assert not places._waiting


@pytest.fixture
def address(url: str) -> Address:
    return read_address(url.partition("://")[2])


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def start(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def join(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_threads_get_their_places_in_the_order_in_which_they_came(places: FairPlaces) -> None:
    order: list[int] = []

    def work(number: int) -> None:
        assert places.take(PATIENCE)
        order.append(number)
        places.give_back()

    assert places.take(0)
    threads = []
    for number in range(20):
        threads.append(start(lambda number=number: work(number)))
        until(lambda count=number + 1: len(places._waiting) == count)
    places.give_back()
    join(*threads)
    assert order == list(range(20))


def test_a_thread_that_comes_later_does_not_get_the_place_of_one_that_waits(places: FairPlaces) -> None:
    may_end = threading.Event()

    def work() -> None:
        assert places.take(PATIENCE)
        may_end.wait(PATIENCE)
        places.give_back()

    assert places.take(0)
    thread = start(work)
    until(lambda: len(places._waiting) == 1)
    places.give_back()
    # Whether the thread has woken up or not: the place is its own.
    assert not places.take(0)
    may_end.set()
    join(thread)


def test_a_thread_that_gave_up_waiting_is_passed_over(places: FairPlaces) -> None:
    assert places.take(0)
    assert not places.take(0.01)
    order: list[str] = []

    def work() -> None:
        assert places.take(PATIENCE)
        order.append("second")
        places.give_back()

    first = start(lambda: order.append(str(places.take(0.05))))
    until(lambda: len(places._waiting) == 1)
    second = start(work)
    join(first)
    assert order == ["False"]
    until(lambda: len(places._waiting) == 1)
    places.give_back()
    join(second)
    assert order == ["False", "second"]


def test_an_interrupt_while_waiting_costs_no_place(places: FairPlaces) -> None:
    class InterruptedForTestError(Exception):
        pass

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise InterruptedForTestError

    assert places.take(0)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedForTestError):
            places.take(PATIENCE)
    finally:
        signal.signal(signal.SIGALRM, before)
    places.give_back()


def test_no_place_is_lost_when_timeouts_and_handovers_meet() -> None:
    places, taken, given_up = FairPlaces(3), [0] * 12, [0] * 12
    most = [0]

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(150):
            if places.take(rng.choice([0.0, 0.0005, 0.002, PATIENCE])):
                taken[number] += 1
                most[0] = max(most[0], places.taken)
                if rng.random() < 0.3:
                    time.sleep(0.0005)
                places.give_back()
            else:
                given_up[number] += 1

    join(*[start(lambda number=number: work(number)) for number in range(12)])
    assert places.taken == 0
    assert not places._waiting
    assert most[0] <= 3
    assert sum(taken) + sum(given_up) == 12 * 150
    assert sum(given_up) > 0


def test_a_connection_that_broke_hands_its_place_on(address: Address) -> None:
    pool = ThreadPool(address, 1)
    first = pool.lend()
    got: list[int] = []

    def work() -> None:
        connection = pool.lend()
        got.append(connection.info.backend_pid)
        pool.give_back(connection)

    threads = []
    for count in (1, 2):
        threads.append(start(work))
        until(lambda count=count: len(pool._places._waiting) == count)
    broken = first.info.backend_pid
    shut(first)
    pool.give_back(first)
    join(*threads)
    assert len(got) == 2
    assert broken not in got
    pool.close()
    assert pool._places.taken == 0


def test_a_connection_that_cannot_be_made_hands_its_place_on(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ThreadPool(address, 1)
    first = pool.lend()
    failed: list[bool] = []

    def refuse(*args: object, **options: object) -> None:
        raise NoConnectionError

    def work() -> None:
        with pytest.raises(NoConnectionError):
            pool.lend()
        failed.append(True)

    threads = []
    for count in (1, 2, 3):
        threads.append(start(work))
        until(lambda count=count: len(pool._places._waiting) == count)
    monkeypatch.setattr(pools, "connect", refuse)
    shut(first)
    pool.give_back(first)
    join(*threads)
    assert failed == [True] * 3
    assert pool._places.taken == 0


def test_who_waits_too_long_is_told_so(address: Address) -> None:
    pool = ThreadPool(address, 1)
    connection = pool.lend()
    pool._address = Address(**{**_fields(address), "timeout": 0.05})
    with pytest.raises(TookTooLongError, match="all connections of this process were busy"):
        pool.lend()
    pool.give_back(connection)
    pool.close()


def _fields(address: Address) -> dict[str, object]:
    return {name: getattr(address, name) for name in address.__struct_fields__}


def test_two_hundred_threads_get_about_as_many_calls_done_each(store: PostgresStore) -> None:
    threads_in_all, calls = 200, 3000
    lock, done, counts = threading.Lock(), [0], [0] * 200
    may_begin = threading.Barrier(threads_in_all)

    def work(number: int) -> None:
        may_begin.wait(PATIENCE)
        while True:
            store.now().wait()
            with lock:
                if done[0] >= calls:
                    return
                done[0] += 1
                counts[number] += 1

    join(*[start(lambda number=number: work(number)) for number in range(threads_in_all)])
    # In turn, each would have 15. Where a thread may overtake, some had none and others hundreds.
    assert min(counts) >= 5
    assert max(counts) <= 45


async def test_tasks_of_an_event_loop_get_connections_in_the_order_in_which_they_came(address: Address) -> None:
    pool = LoopPool(Address(**{**_fields(address), "connections": 1}), asyncio.get_running_loop())
    order: list[int] = []

    async def work(number: int) -> None:
        connection = await pool.lend()
        order.append(number)
        pool.give_back(connection)

    connection = await pool.lend()
    tasks = [asyncio.create_task(work(number)) for number in range(20)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    pool.give_back(connection)
    tasks.append(asyncio.create_task(work(20)))
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [number for number in range(21) if number != 3]
    pool.close()
