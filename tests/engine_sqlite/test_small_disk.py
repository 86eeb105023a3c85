"""Small and read-only disks: the log leaves room to the jobs, and what cannot be written is told with exit code 5."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.scene import Scene

from perdure import App
from perdure.engines.opener import open_store
from perdure.engines.sqlite import checkpoint
from perdure.errors import EngineFull, EngineUnusable
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock, VirtualClock

MEGABYTE = 1 << 20
JOBS = 1500
ROOT = Path(__file__).parents[2]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", directory], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a disk")
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Makes the system tell of a disk of that size, of which so much is free."""
    real = os.statvfs

    def pretend(size: int, free: int) -> None:
        def statvfs(path: Any) -> os.statvfs_result:
            found = list(real(path))
            found[0] = found[1] = 4096
            found[2], found[3], found[4] = size // 4096, free // 4096, free // 4096
            return os.statvfs_result(found)

        monkeypatch.setattr(os, "statvfs", statvfs)

    return pretend


def log_size(path: Path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


def fill(path: Path, count: int) -> int:
    """Enqueue jobs of 1 KB one by one; the largest size of the log."""
    largest = 0
    with closing(open_store(f"sqlite:///{path}", clock=SystemClock())) as store:
        scene = Scene(store, VirtualClock())
        for _ in range(count):
            scene.enqueue(args=b"x" * 1000)
            largest = max(largest, log_size(path))
        assert store.count(JobFilter()).wait() == count
    return largest


def test_the_log_leaves_a_disk_of_8_mb_to_the_jobs(disk: Path) -> None:
    assert fill(disk / "store.db", JOBS) < 2 * MEGABYTE


def test_the_log_is_short_where_the_system_tells_of_a_small_disk(
    tmp_path: Path, small_disk: Callable[[int, int], None]
) -> None:
    small_disk(8 * MEGABYTE, 7 * MEGABYTE)
    assert fill(tmp_path / "store.db", JOBS) < 2 * MEGABYTE


def test_the_log_is_not_made_longer_in_advance_where_little_is_free(
    tmp_path: Path, small_disk: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "GAP", 0.0)
    path = tmp_path / "store.db"
    small_disk(1000 * MEGABYTE, 20 * MEGABYTE)
    assert fill(path, 100) < 4 * MEGABYTE
    path.unlink()
    small_disk(1000 * MEGABYTE, 500 * MEGABYTE)
    assert fill(path, 100) > checkpoint.THRESHOLD, "the test would notice it"


def test_a_full_disk_is_told_and_the_store_goes_on_when_there_is_room(disk: Path) -> None:
    ballast = disk / "ballast"
    with closing(open_store(f"sqlite:///{disk / 'store.db'}", clock=SystemClock())) as store:
        scene = Scene(store, VirtualClock())
        scene.enqueue()
        ballast.write_bytes(bytes(MEGABYTE))
        with pytest.raises(EngineFull):
            store.enqueue([scene.new_job(args=b"x" * 100_000) for _ in range(80)]).wait()
        ballast.unlink()
        scene.enqueue()


@pytest.fixture
def read_only(disk: Path) -> Path:
    """The path of a store on a disk that may only be read."""
    path = disk / "store.db"
    with closing(open_store(f"sqlite:///{path}", clock=SystemClock())) as store:
        Scene(store, VirtualClock()).enqueue()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    return path


def test_a_client_is_told_that_the_file_is_read_only(read_only: Path) -> None:
    app = App(f"sqlite:///{read_only}")
    with pytest.raises(EngineUnusable, match=r"right to write|may write"):
        app.client().stats()


@pytest.mark.parametrize("command", [["worker"], ["enqueue", "task"], ["jobs", "ls"]])
def test_a_command_ends_with_exit_code_5_when_the_file_is_read_only(read_only: Path, command: list[str]) -> None:
    environment = {**os.environ, "PERDURE_URL": f"sqlite:///{read_only}", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "perdure", *command], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 5, ended.stderr
    assert str(read_only) in ended.stderr
    assert "try:" in ended.stderr
    assert "write" in ended.stderr
    assert "Traceback" not in ended.stderr
