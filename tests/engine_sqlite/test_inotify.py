"""The watch on a file's writes: told at once where the system can tell, and harmless where it cannot."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from perdure.engines.sqlite.inotify import FileWatch


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of writes so")
def test_a_write_by_somebody_else_ends_the_wait(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    watch = FileWatch(str(path))
    writer = threading.Timer(0.1, path.write_bytes, [b"x"])
    began = time.monotonic()
    writer.start()
    assert watch.wait(240)
    assert time.monotonic() - began < 120
    writer.join()
    watch.close()


def test_a_wait_without_a_write_ends_when_its_time_is_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"before")
    watch = FileWatch(str(path))
    assert not watch.wait(0.01)
    watch.close()


def test_a_file_that_is_not_there_is_waited_for_in_vain(tmp_path: Path) -> None:
    watch = FileWatch(str(tmp_path / "nothing"))
    began = time.monotonic()
    assert not watch.wait(0.02)
    assert time.monotonic() - began >= 0.02
    watch.close()
    watch.close()
