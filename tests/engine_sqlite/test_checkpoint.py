"""The write-ahead log stays short: under load, beside readers, and with several processes."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.scene import Scene
from tests.engine_sqlite.conftest import Open

from perdure.engines.sqlite import checkpoint
from perdure.engines.sqlite.log import Log
from perdure.engines.sqlite.store import SqliteStore
from perdure.store.reads import JobFilter

THRESHOLD = 128 * 1024
BATCH = 64 * 1024
"""A bit more than what one enqueue below adds to the log."""


@pytest.fixture(autouse=True)
def low_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "THRESHOLD", THRESHOLD)
    monkeypatch.setattr(checkpoint, "GAP", 0.0)


def log_size(path: Path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


def rounds(path: Path) -> int:
    """How often the log was begun anew, by its own count."""
    return int.from_bytes(path.with_name(path.name + "-wal").read_bytes()[12:16], "big")


def until_round(scene: Scene, path: Path, number: int) -> None:
    for _ in range(100):
        write(scene)
        if rounds(path) >= number:
            return
    raise AssertionError(f"round {rounds(path)} after 100 writes")


def write(scene: Scene) -> None:
    scene.store.enqueue([scene.new_job(args=b"x" * 3000) for _ in range(10)]).wait()
    # The log is seen to after the answer; a second request is only taken up after that.
    scene.store.promote(0).wait()


def test_the_log_stays_short_under_load(scene: Scene, path: Path) -> None:
    sizes = []
    for _ in range(60):
        write(scene)
        sizes.append(log_size(path))
    assert max(sizes) < THRESHOLD + 2 * BATCH
    assert rounds(path) > 5


def test_the_log_is_overwritten_and_not_made_longer_again(scene: Scene, path: Path) -> None:
    until_round(scene, path, 3)
    before = log_size(path)
    assert before > THRESHOLD
    for _ in range(60):
        write(scene)
        assert abs(log_size(path) - before) <= BATCH


def test_a_log_that_has_grown_far_too_long_is_cut_off(scene: Scene, path: Path, outsider: sqlite3.Connection) -> None:
    outsider.execute("BEGIN")
    outsider.execute("SELECT COUNT(*) FROM perdure_jobs").fetchone()
    while log_size(path) < 5 * THRESHOLD:
        write(scene)
    outsider.execute("COMMIT")
    until_round(scene, path, 2)
    assert log_size(path) < THRESHOLD + 2 * BATCH


def test_what_an_earlier_round_has_left_does_not_count(scene: Scene, path: Path) -> None:
    until_round(scene, path, 3)
    log = Log(f"{path}-wal")
    assert not log.reaches(THRESHOLD), "though the file is that long"
    assert not log.reaches(THRESHOLD), "though the file is that long"
    assert log.reaches(0)
    log.close()


def test_a_log_that_is_not_there_reaches_nowhere(tmp_path: Path) -> None:
    log = Log(f"{tmp_path}/none-wal")
    assert not log.reaches(0)
    (tmp_path / "none-wal").write_bytes(b"")
    assert not log.reaches(0)
    log.close()


def test_the_log_stays_short_with_two_stores_on_the_file(scene: Scene, open_file: Open, path: Path) -> None:
    other = Scene(open_file(), scene.clock)
    sizes = []
    for number in range(60):
        one = scene if number % 2 else other
        one.store.enqueue([scene.new_job(args=b"x" * 3000) for _ in range(10)]).wait()
        one.store.promote(0).wait()
        sizes.append(log_size(path))
    assert max(sizes) < THRESHOLD + 2 * BATCH


def test_a_long_reader_only_puts_the_checkpoint_off(scene: Scene, path: Path, outsider: sqlite3.Connection) -> None:
    outsider.execute("BEGIN")
    outsider.execute("SELECT COUNT(*) FROM perdure_jobs").fetchone()
    for _ in range(10):
        write(scene)
    grown = log_size(path)
    assert grown > THRESHOLD
    outsider.execute("COMMIT")
    began = rounds(path)
    for _ in range(30):
        write(scene)
    assert rounds(path) > began
    assert log_size(path) <= grown + BATCH


def test_one_process_at_a_time_checkpoints(scene: Scene, path: Path) -> None:
    with path.with_name(path.name + "-checkpoint").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for _ in range(10):
            write(scene)
        grown = log_size(path)
        assert grown > THRESHOLD + 2 * BATCH
    began = rounds(path)
    for _ in range(30):
        write(scene)
    assert rounds(path) > began
    assert log_size(path) <= grown + BATCH


def test_the_file_is_whole_after_many_checkpoints(scene: Scene, store: SqliteStore, path: Path) -> None:
    for _ in range(60):
        write(scene)
    store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT COUNT(*) FROM perdure_jobs").fetchone() == (600,)
    connection.close()


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> int:
    """New logs are made longer soon after the tables were made; gives how long they become."""
    monkeypatch.setattr(checkpoint, "THRESHOLD", 4 * THRESHOLD)
    monkeypatch.setattr(checkpoint, "GROWN", THRESHOLD + 2 * 16 * 1024)
    return 5 * THRESHOLD + 2 * 16 * 1024


def enqueue_few(scene: Scene, count: int) -> list[str]:
    return [scene.enqueue() for _ in range(count)]


def test_a_log_that_grows_by_small_commits_is_made_longer_in_one_go(
    scene: Scene, path: Path, small_steps: int, tmp_path: Path
) -> None:
    ids = enqueue_few(scene, 10)
    assert log_size(path) == small_steps
    assert rounds(path) == 0
    # As a crash would leave it: SQLite has to find the end of what was written by itself.
    for ending in ("", "-wal"):
        shutil.copy(f"{path}{ending}", tmp_path / f"copy.db{ending}")
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert [row[0] for row in copy.execute("SELECT id FROM perdure_jobs ORDER BY id")] == sorted(ids)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    copy.close()


def test_a_log_that_was_made_longer_is_begun_anew_like_any_other(scene: Scene, path: Path, small_steps: int) -> None:
    enqueue_few(scene, 10)
    until_round(scene, path, 3)
    assert log_size(path) < small_steps + 2 * BATCH


def test_a_log_that_grows_by_large_commits_is_left_to_grow(scene: Scene, path: Path, small_steps: int) -> None:
    before = log_size(path)
    scene.store.enqueue([scene.new_job(args=b"x" * 3000) for _ in range(45)]).wait()
    assert before + THRESHOLD < log_size(path) < 4 * THRESHOLD


def test_a_log_is_not_made_longer_while_another_writes(
    scene: Scene, store: SqliteStore, path: Path, outsider: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_few(scene, 10)
    before = log_size(path)
    monkeypatch.setattr(checkpoint, "THRESHOLD", 4 * THRESHOLD)
    monkeypatch.setattr(checkpoint, "GROWN", THRESHOLD)
    outsider.execute("BEGIN IMMEDIATE")
    keeper = store.transactor._checkpointer
    assert keeper is not None
    keeper._last_size = before - 1
    keeper._make_room(store.transactor._connection)
    assert log_size(path) == before
    outsider.execute("ROLLBACK")
    keeper._last_size = before - 1
    keeper._make_room(store.transactor._connection)
    assert log_size(path) == 5 * THRESHOLD


def test_a_full_disk_leaves_the_log_as_it_was(
    scene: Scene, path: Path, small_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pwrite(file: int, data: bytes, place: int) -> int:
        if tried:
            raise OSError(errno.ENOSPC, "No space left on device")
        tried.append(place)
        return real(file, data[:1000], place)

    tried: list[int] = []
    real: Any = os.pwrite
    monkeypatch.setattr(os, "pwrite", pwrite)
    count = 0
    while not tried and count < 50:
        scene.enqueue()
        count += 1
    assert tried == [log_size(path)]
    scene.enqueue()
    assert scene.store.count(JobFilter()).wait() == count + 1
