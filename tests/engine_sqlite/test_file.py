"""The file: private to its user, in a directory that exists, never across a fork; full disks are survived."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from tests.conformance.scene import Scene, ended, success
from tests.engine_sqlite.conftest import Open

from perdure.clock import VirtualClock
from perdure.engines.sqlite import commit
from perdure.engines.sqlite.connection import connect
from perdure.engines.sqlite.schema import migrate
from perdure.engines.sqlite.store import SqliteStore, open_sqlite
from perdure.errors import EngineError, EngineFull, EngineUnreachable
from perdure.store.reads import JobFilter


def test_only_its_user_can_read_the_file_and_what_lies_beside_it(scene: Scene, path: Path) -> None:
    scene.enqueue()
    beside = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-checkpoint")]
    assert [stat.S_IMODE(file.stat().st_mode) for file in beside] == [0o600] * 4


def test_the_mode_of_a_file_that_exists_is_left_alone(open_file: Open, path: Path) -> None:
    path.touch(mode=0o640)
    path.chmod(0o640)
    open_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineUnreachable, match="nowhere does not exist"):
        open_sqlite(str(tmp_path / "nowhere" / "store.db"), VirtualClock(), auto_migrate=True, is_inline=False)


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(EngineUnreachable, match="directory"):
        open_sqlite(str(tmp_path), VirtualClock(), auto_migrate=True, is_inline=False)


def test_the_store_stays_where_it_was_opened_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_sqlite("store.db", VirtualClock(), auto_migrate=True, is_inline=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert store.count(JobFilter()).wait() == 0
    store.close()
    assert os.listdir(tmp_path / "elsewhere") == []


def test_what_is_written_is_synced_before_it_is_answered(scene: Scene, open_file: Open, path: Path) -> None:
    connection = connect(str(path))
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    connection.close()


def test_closing_leaves_one_whole_file(scene: Scene, store: SqliteStore, path: Path) -> None:
    job_id = scene.enqueue()
    store.close()
    assert not path.with_name(path.name + "-wal").exists()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT id FROM perdure_jobs").fetchall() == [(job_id,)]
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_refused(scene: Scene, store: SqliteStore) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for its parent's threads waits for ever
        try:
            scene.enqueue()
        except EngineError as error:
            os.write(writing, str(error).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        # Not sys.exit: the child must not run the parent's tests or close the parent's store.
        store.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert b"must not cross a fork" in os.read(reading, 1000)
    os.close(reading)
    os.close(writing)
    assert scene.enqueue()


@pytest.fixture
def small(path: Path, clock: VirtualClock) -> tuple[SqliteStore, sqlite3.Connection]:
    """A store on a disk that is nearly full, and the connection that can give it more room."""
    connection = connect(str(path))
    migrate(connection, clock, auto_migrate=True)
    commit.prepare(connection)
    connection.execute("PRAGMA max_page_count = 60")
    return SqliteStore(connection, str(path), clock, is_inline=False), connection


def test_a_full_disk_is_told_and_survived(small: tuple[SqliteStore, sqlite3.Connection], clock: VirtualClock) -> None:
    store, connection = small
    scene = Scene(store, clock)
    worker = scene.worker()
    kept: list[str] = []

    def fill_up() -> None:
        while True:
            kept.append(scene.enqueue(args=b"x" * 5000))

    with pytest.raises(EngineFull, match="Free disk space"):
        fill_up()
    assert kept
    assert store.count(JobFilter()).wait() == len(kept)
    connection.execute("PRAGMA max_page_count = 1000000")
    assert scene.enqueue(args=b"x" * 5000)
    jobs = scene.fetch(worker, limit=100)
    assert len(jobs) == len(kept) + 1
    assert store.commit([ended(job, success(job)) for job in jobs]).wait() == [True] * len(jobs)
    store.close()


def test_a_full_disk_fails_only_what_does_not_fit(
    small: tuple[SqliteStore, sqlite3.Connection], clock: VirtualClock
) -> None:
    store, _ = small
    scene = Scene(store, clock)
    answers: list[object] = []

    def enqueue(size: int) -> None:
        try:
            answers.append(scene.store.enqueue([scene.new_job(args=b"x" * size)]).wait())
        except EngineFull:
            answers.append("full")

    threads = [threading.Thread(target=enqueue, args=(size,)) for size in (1_000_000, 10, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count("full") == 1
    assert store.count(JobFilter()).wait() == 2
    store.close()
