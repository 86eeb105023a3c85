"""The write-ahead log stays short: under load, beside readers, and with several processes."""

from __future__ import annotations

import fcntl
import sqlite3
from pathlib import Path

import pytest
from tests.conformance.scene import Scene
from tests.engine_sqlite.conftest import Open

from perdure.engines.sqlite import checkpoint
from perdure.engines.sqlite.store import SqliteStore

THRESHOLD = 128 * 1024
BATCH = 64 * 1024
"""A bit more than what one enqueue below adds to the log."""


@pytest.fixture(autouse=True)
def low_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "THRESHOLD", THRESHOLD)


def log_size(path: Path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


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
    assert sum(size == 0 for size in sizes) > 5


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
    for _ in range(30):
        write(scene)
    assert log_size(path) < grown


def test_one_process_at_a_time_checkpoints(scene: Scene, path: Path) -> None:
    with path.with_name(path.name + "-checkpoint").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for _ in range(10):
            write(scene)
        grown = log_size(path)
        assert grown > THRESHOLD + 2 * BATCH
    for _ in range(30):
        write(scene)
    assert log_size(path) < grown


def test_the_file_is_whole_after_many_checkpoints(scene: Scene, store: SqliteStore, path: Path) -> None:
    for _ in range(60):
        write(scene)
    store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT COUNT(*) FROM perdure_jobs").fetchone() == (600,)
    connection.close()
