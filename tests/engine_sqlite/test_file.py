"""The file: private to its user, in a directory that exists, never across a fork; full disks are survived."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance.scene import Scene, ended, success
from tests.engine_sqlite.conftest import Open
from tests.engine_sqlite.unprivileged import own_directory, unprivileged

from perdure.engines.sqlite import commit
from perdure.engines.sqlite.connection import connect
from perdure.engines.sqlite.schema import migrate
from perdure.engines.sqlite.store import SqliteStore, open_sqlite
from perdure.errors import EngineError, EngineFull, EngineUnreachable
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


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


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_file_behind_a_dangling_link_is_private_too(tmp_path: Path, umask: int) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "store.db", tmp_path / "store.db"
    link.symlink_to(target)
    before = os.umask(umask)
    try:
        store = open_sqlite(str(link), VirtualClock(), auto_migrate=True, is_inline=False)
        Scene(store, VirtualClock()).enqueue()
        files = sorted(target.parent.iterdir())
        endings = ("", "-checkpoint", "-shm", "-turn", "-wal")
        assert [file.name for file in files] == [f"store.db{ending}" for ending in endings]
        assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 5
        store.close()
    finally:
        os.umask(before)
    assert sorted(os.listdir(tmp_path)) == ["real", "store.db"]
    assert link.is_symlink()


def test_a_file_and_a_link_to_it_are_one_store_with_one_lock(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    first = open_sqlite(str(tmp_path / "store.db"), VirtualClock(), auto_migrate=True, is_inline=False)
    second = open_sqlite(str(tmp_path / "link.db"), VirtualClock(), auto_migrate=True, is_inline=False)
    job = Scene(first, VirtualClock()).enqueue()
    assert second.get([job]).wait()[0] is not None
    assert not (tmp_path / "link.db-checkpoint").exists()
    first.close()
    second.close()


def test_a_lock_that_is_a_directory_or_a_link_is_told_with_what_to_do(path: Path) -> None:
    lock = path.with_name(path.name + "-checkpoint")
    lock.mkdir()
    with pytest.raises(EngineUnreachable, match=r"-checkpoint, whose lock .* plain file .* may be deleted"):
        open_sqlite(str(path), VirtualClock(), auto_migrate=True, is_inline=False)
    lock.rmdir()
    lock.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(EngineUnreachable, match=r"-checkpoint, whose lock"):
        open_sqlite(str(path), VirtualClock(), auto_migrate=True, is_inline=False)
    assert not path.with_name("elsewhere").exists()


@pytest.mark.parametrize(
    ("what", "mode", "said"),
    [
        ("store.db-checkpoint", 0o400, r"-checkpoint, whose lock .*Permission denied.*may read and write"),
        ("store.db-checkpoint", 0o000, r"-checkpoint, whose lock .*Permission denied.*may read and write"),
        ("store.db", 0o400, r"store.db cannot be used .*Give this user the right to write to the file"),
        ("store.db", 0o000, r"store.db cannot be used .*this user may write"),
        (
            ".",
            0o500,
            r"store.db.* cannot be .*right to write to the directory|may write to both|file and its directory",
        ),
    ],
)
def test_what_cannot_be_written_is_told_with_what_to_do(what: str, mode: int, said: str) -> None:
    with own_directory() as directory:
        path = str(directory / "store.db")
        with unprivileged():
            store = open_sqlite(path, VirtualClock(), auto_migrate=True, is_inline=False)
            Scene(store, VirtualClock()).enqueue()
            store.close()
            (directory / what).chmod(mode)
            if what == ".":
                # With the log and the lock gone, they would have to be made.
                directory.chmod(0o700)
                (directory / "store.db-checkpoint").unlink()
                directory.chmod(mode)
            with pytest.raises(EngineUnreachable, match=said):
                open_and_enqueue(path)


def open_and_enqueue(path: str) -> None:
    with closing(open_sqlite(path, VirtualClock(), auto_migrate=True, is_inline=False)) as store:
        Scene(store, VirtualClock()).enqueue()


def test_a_directory_that_may_not_be_written_is_told_when_the_file_is_new() -> None:
    with own_directory() as directory, unprivileged():
        directory.chmod(0o500)
        with pytest.raises(EngineUnreachable, match=r"cannot be made .*right to write to the directory"):
            open_sqlite(str(directory / "store.db"), VirtualClock(), auto_migrate=True, is_inline=False)
