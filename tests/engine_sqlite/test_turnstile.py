"""Processes that write to one file take turns: none keeps another waiting for more than a few transactions."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conformance.scene import Scene
from tests.engine_sqlite.conftest import Open

from perdure.engines.sqlite import turnstile
from perdure.engines.sqlite.store import SqliteStore
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

PATIENCE = 60.0

PRODUCE = """
import sys
from perdure.system.clock import SystemClock
from perdure.engines.opener import open_store
from perdure.model.job import NewJob
store = open_store("sqlite:///" + sys.argv[1], clock=SystemClock())
print("begun", flush=True)
number = 0
while True:
    number += 1
    store.enqueue([NewJob(id=f"{sys.argv[2]}-{number}", task="send", queue="mail", args=b"{}")]).wait()
"""


@contextmanager
def another_waits(path: Path) -> Iterator[None]:
    """As long as another process would wait for its turn."""
    file = os.open(f"{path}-turn", os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def nobody_waits(path: Path) -> bool:
    try:
        file = os.open(f"{path}-turn", os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", PATIENCE)


@pytest.mark.usefixtures("patient")
def test_a_busy_process_makes_few_more_transactions_when_another_waits(
    scene: Scene, store: SqliteStore, path: Path
) -> None:
    is_over = threading.Event()

    def produce() -> None:
        while not is_over.is_set():
            scene.enqueue()

    thread = threading.Thread(target=produce)
    try:
        with another_waits(path):
            before = store.transactor.commits
            thread.start()
            # It has come to a stop when nothing happens for much longer than a transaction takes.
            last, since = -1, time.monotonic()
            while time.monotonic() - since < 0.3:
                if store.transactor.commits != last:
                    last, since = store.transactor.commits, time.monotonic()
                assert store.transactor.commits - before <= turnstile.TRANSACTIONS
                time.sleep(0.01)
        until(lambda: store.transactor.commits - before > 2 * turnstile.TRANSACTIONS)
    finally:
        is_over.set()
        thread.join(PATIENCE)


@pytest.mark.usefixtures("patient")
def test_the_process_that_waits_comes_before_the_busy_one(
    scene: Scene, store: SqliteStore, path: Path, open_file: Open, outsider: sqlite3.Connection
) -> None:
    """With the write lock held by a third, the one that came first has its transaction first."""
    other = Scene(open_file(), VirtualClock())
    outsider.execute("BEGIN IMMEDIATE")
    first = threading.Thread(target=lambda: other.enqueue(id="other", task="first"))
    first.start()
    until(lambda: not nobody_waits(path))
    second = threading.Thread(target=lambda: [scene.enqueue(task="second") for _ in range(20)])
    second.start()
    outsider.execute("COMMIT")
    first.join(PATIENCE)
    second.join(PATIENCE)
    assert not first.is_alive()
    assert not second.is_alive()
    # The busy one had to look first: it may have made so many before.
    order = [task for (task,) in outsider.execute("SELECT task FROM perdure_jobs ORDER BY rowid")]
    assert len(order) == 21
    assert order.index("first") <= turnstile.TRANSACTIONS
    assert nobody_waits(path)


def test_a_process_that_was_stopped_while_it_waited_does_not_stop_others(
    scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.01)
    with another_waits(path):
        for _ in range(3 * turnstile.TRANSACTIONS):
            scene.enqueue()


def test_an_interrupt_while_waiting_leaves_no_lock(
    scene: Scene, path: Path, outsider: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    outsider.execute("BEGIN IMMEDIATE")

    def interrupt(seconds: float) -> None:
        assert not nobody_waits(path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(turnstile.time, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            scene.enqueue()
    assert nobody_waits(path)
    outsider.execute("COMMIT")
    assert scene.enqueue()


def test_beside_processes_that_write_all_the_time_a_process_gets_its_turns(
    scene: Scene, store: SqliteStore, path: Path
) -> None:
    producers = [
        subprocess.Popen([sys.executable, "-c", PRODUCE, str(path), str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    try:
        for producer in producers:
            assert producer.stdout is not None
            assert producer.stdout.readline() == "begun\n"
        until(lambda: store.count(JobFilter()).wait() > 20)
        others = [jobs_of_others_meanwhile(scene, store) for _ in range(3)]
    finally:
        for producer in producers:
            producer.kill()
            producer.communicate()
    # The documented bound: 16 transactions of each of the two for each job. With SQLite's own waiting it was 1,000 to
    # 3,400 in every round. One round may be longer because this process did not run, so the shortest counts.
    assert min(others) <= 20 * 2 * turnstile.TRANSACTIONS


def jobs_of_others_meanwhile(scene: Scene, store: SqliteStore) -> int:
    """How many jobs others enqueue while this process enqueues 20."""
    before = store.count(JobFilter()).wait()
    for _ in range(20):
        scene.enqueue()
    return store.count(JobFilter()).wait() - before - 20


def test_closing_it_twice_closes_no_file_of_another(tmp_path: Path) -> None:
    turns = turnstile.Turnstile(str(tmp_path / "store.db"))
    turns.close()
    other = os.open(tmp_path, os.O_RDONLY)  # gets the number that was just given back
    turns.close()
    os.close(other)
