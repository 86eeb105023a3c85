"""The files of an open store are deleted, replaced or truncated: callers are told, and nothing is acknowledged."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance.scene import Scene

from perdure import App, EngineLost
from perdure.engines.opener import open_store
from perdure.engines.sqlite.reader import THREADS
from perdure.engines.sqlite.store import SqliteStore
from perdure.model.job import JobId
from perdure.store import Store
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock, VirtualClock

PATIENCE = 60.0
Harm = Callable[[Path], None]


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def delete_all(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        beside(path, end).unlink()


def replace_by_another_store(path: Path) -> None:
    other = beside(path, ".other")
    with closing(open_store(f"sqlite:///{other}", clock=SystemClock())) as store:
        Scene(store, VirtualClock()).enqueue()
    other.rename(path)


def replace_by_a_copy(path: Path) -> None:
    copy = beside(path, ".copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)


HARMS: dict[str, Harm] = {
    "deleted": lambda path: path.unlink(),
    "moved away": lambda path: path.rename(beside(path, ".elsewhere")) and None,
    "all deleted": delete_all,
    "log deleted": lambda path: beside(path, "-wal").unlink(),
    "index deleted": lambda path: beside(path, "-shm").unlink(),
    "directory gone": lambda path: path.parent.rename(path.parent.with_name("elsewhere")) and None,
    "replaced by another store": replace_by_another_store,
    "replaced by a copy": replace_by_a_copy,
    "truncated": lambda path: os.truncate(path, 0),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2 // 4096 * 4096),
    "log truncated": lambda path: os.truncate(beside(path, "-wal"), 0),
}
every_harm = pytest.mark.parametrize("harm", HARMS.values(), ids=[name.replace(" ", "-") for name in HARMS])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a store with jobs in its file and in its log."""
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "store.db"
    with closing(open_store(f"sqlite:///{path}", clock=SystemClock())) as store:
        store.enqueue([Scene(store, VirtualClock()).new_job(id=JobId(f"before-{n}")) for n in range(200)]).wait()
    assert path.stat().st_size > 20 * 4096
    return path


def open_it(path: Path) -> Store:
    store = open_store(f"sqlite:///{path}", clock=SystemClock())
    Scene(store, VirtualClock()).enqueue(id=JobId("first"))
    return store


def ids_at(path: Path) -> set[str]:
    """The jobs that a program finds that opens the path anew."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return {job_id for (job_id,) in connection.execute("SELECT id FROM perdure_jobs")}
    except sqlite3.Error:
        return set()


def wait_for_connections(path: Path, count: int) -> None:
    """Wait until this process has opened the file so often: readers open it beside the first call."""
    deadline = time.monotonic() + PATIENCE
    while [_target(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")].count(str(path)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def until_lost(call: Callable[[int], object]) -> EngineLost:
    """Make calls until one says that the file is lost."""
    deadline = time.monotonic() + PATIENCE
    number = 0
    while True:
        try:
            call(number)
        except EngineLost as error:
            return error
        number += 1
        assert time.monotonic() < deadline
        time.sleep(0.01)


@every_harm
def test_a_producer_is_told_and_keeps_being_told(path: Path, harm: Harm) -> None:
    store = open_it(path)
    scene = Scene(store, VirtualClock())
    harm(path)
    error = until_lost(lambda number: scene.enqueue(id=JobId(f"after-{number}")))
    assert str(path) in error.message
    assert "while the store was open" in error.message
    assert "Stop all programs" in (error.hint or "")
    # A second call is told as well, at the latest with the next look.
    until_lost(lambda number: scene.enqueue(id=JobId(f"again-{number}")))
    store.close()


@pytest.mark.parametrize("harm", ["deleted", "moved away", "all deleted", "replaced by another store", "log deleted"])
@pytest.mark.parametrize("way", ["alone", "crowd", "loop"])
def test_no_id_is_given_for_a_job_that_is_not_in_the_file_at_the_path(path: Path, harm: str, way: str) -> None:
    store = open_it(path)
    HARMS[harm](path)
    acknowledged = _enqueue(store, way)
    assert acknowledged == []
    store.close()


def _enqueue(store: Store, way: str) -> list[str]:
    """Enqueue a few jobs; the ids of those that were acknowledged."""
    jobs = [Scene(store, VirtualClock()).new_job(id=JobId(f"after-{number}")) for number in range(8)]
    given: list[str] = []

    def one(number: int) -> None:
        try:
            given.extend(store.enqueue([jobs[number]]).wait())
        except EngineLost:
            pass

    async def all_of_them() -> None:
        answers = await asyncio.gather(*(_awaited(store, job) for job in jobs), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, list):
                given.extend(answer)
            else:
                assert isinstance(answer, EngineLost)

    if way == "loop":
        asyncio.run(all_of_them())
    elif way == "alone":
        for number in range(len(jobs)):
            one(number)
    else:
        threads = [threading.Thread(target=one, args=(number,)) for number in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return given


async def _awaited(store: Store, job: object) -> list[JobId]:
    return await store.enqueue([job])  # type: ignore[list-item]


def test_what_was_acknowledged_before_is_in_the_file_at_the_path(path: Path) -> None:
    store = open_it(path)
    scene = Scene(store, VirtualClock())
    acknowledged = {scene.enqueue(id=JobId(f"ok-{number}")) for number in range(20)}
    assert acknowledged <= ids_at(path)
    store.close()


@every_harm
def test_a_reader_is_told(path: Path, harm: Harm) -> None:
    store = open_it(path)
    store.count(JobFilter()).wait()
    wait_for_connections(path, 1 + THREADS)
    harm(path)
    if harm is HARMS["cut in half"]:
        # A reader alone cannot tell a truncation from a VACUUM; the writer's next look does.
        until_lost(lambda number: store.promote(10).wait())
    else:
        until_lost(lambda number: store.count(JobFilter()).wait())
    store.close()


# A log that was emptied is noticed by the first call that needs a page of it, which an idle worker does not.
@pytest.mark.parametrize("harm", [harm for name, harm in HARMS.items() if name != "log truncated"])
def test_an_idle_worker_is_woken_to_be_told(path: Path, harm: Harm) -> None:
    store = open_it(path)
    assert isinstance(store, SqliteStore)
    told = threading.Event()

    def look() -> None:
        try:
            store.promote(10).wait()
        except EngineLost:
            told.set()

    stop = store.wakeups.subscribe(look)
    harm(path)
    assert told.wait(PATIENCE)
    stop()
    store.close()


@every_harm
def test_a_client_of_either_kind_is_told(path: Path, harm: Harm) -> None:
    app = App(f"sqlite:///{path}")

    @app.task
    def task() -> None:
        pass

    task.enqueue()
    harm(path)
    until_lost(lambda number: task.enqueue())

    async def awaited() -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await task.enqueue_async()
                except EngineLost:
                    return
                await asyncio.sleep(0.01)

    asyncio.run(awaited())
    app.close()


def test_closing_a_store_whose_file_was_replaced_leaves_the_new_one_alone(path: Path) -> None:
    store = open_it(path)
    replace_by_another_store(path)
    beside(path, "-wal").unlink()
    beside(path, "-shm").unlink()
    with closing(open_store(f"sqlite:///{path}", clock=SystemClock())) as other:
        Scene(other, VirtualClock()).enqueue(id=JobId("new"))
        until_lost(lambda number: store.promote(10).wait())
        store.close()
        assert beside(path, "-wal").exists()
        assert "new" in ids_at(path)


def test_a_deleted_file_is_not_made_anew(path: Path) -> None:
    store = open_it(path)
    path.unlink()
    until_lost(lambda number: store.count(JobFilter()).wait())
    until_lost(lambda number: store.promote(10).wait())
    store.close()
    assert not path.exists()


def test_a_vacuum_is_no_truncation(path: Path) -> None:
    store = open_it(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as operator:
        operator.execute("DELETE FROM perdure_jobs WHERE id LIKE 'before-%'")
        operator.execute("VACUUM")
        before = path.stat().st_size
        operator.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert path.stat().st_size < before
    scene = Scene(store, VirtualClock())
    for number in range(40):
        scene.enqueue(id=JobId(f"after-{number}"))
        store.count(JobFilter()).wait()
        time.sleep(0.01)
    store.close()
    assert len(ids_at(path)) == 41
