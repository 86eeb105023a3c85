"""A worker or a server whose SQLite file is deleted or replaced: the process ends, or every request says so."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from tests.chaos.crew import Crew, Engine, until
from tests.servers.ports import free_port

from perdure.engines.opener import open_store
from perdure.system.clock import SystemClock

pytestmark = pytest.mark.crash


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "perdure.db"


@pytest.fixture
def crew(path: Path, tmp_path: Path):  # type: ignore[no-untyped-def]
    crew = Crew(Engine(url=f"sqlite:///{path}", find_damage=list, is_free=lambda: True), tmp_path)
    yield crew
    crew.close()


def delete(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        os.unlink(f"{path}{end}")


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    open_store(f"sqlite:///{other}", clock=SystemClock()).close()
    other.rename(path)


def truncate(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize("harm", [delete, replace, truncate])
def test_a_worker_finishes_what_runs_and_ends_with_exit_code_5(crew: Crew, path: Path, harm) -> None:  # type: ignore[no-untyped-def]
    # Long waits everywhere: only the watch on the file can make it look.
    settings = {"lease": "5m", "poll": "5m", "grace": "1m"}
    worker = crew.start("-m", "perdure", "worker", "tests.chaos.work:app", **settings)
    until(lambda: worker.pid in crew.registered(), "the worker is there")
    crew.enqueue("on_loop", seconds=1.0)
    until(lambda: crew.seen("start"), "the handler runs")
    harm(path)
    assert worker.wait(60) == 5
    assert len(crew.seen("end")) == 1, "a handler that runs may finish"
    output = crew.output()
    assert "while the store was open" in output
    assert "Stop all programs that use the store" in output
    assert "Traceback" not in output


def test_several_processes_end_together_and_begin_no_new_file(crew: Crew, path: Path) -> None:
    settings = {"lease": "5m", "poll": "5m", "grace": "1m"}
    supervisor = crew.start("-m", "perdure", "worker", "tests.chaos.work:app", "--processes", "2", **settings)
    until(lambda: len(crew.registered()) == 2, "both workers are there")
    delete(path)
    assert supervisor.wait(60) == 5
    assert not path.exists()


def test_an_api_answers_503_with_the_reason(crew: Crew, path: Path) -> None:
    port = free_port()
    server = crew.start("-m", "perdure", "server", "--port", str(port), "tests.chaos.work:app")
    stats = f"http://127.0.0.1:{port}/api/v1/stats"

    def answer() -> tuple[int, str] | None:
        try:
            with urllib.request.urlopen(stats, timeout=30) as response:
                return response.status, ""
        except urllib.error.HTTPError as error:
            with closing(error):
                return error.code, json.loads(error.read())["detail"]
        except urllib.error.URLError:
            return None

    until(lambda: answer() == (200, ""), "the API answers")
    delete(path)
    deadline = time.monotonic() + 60
    found = answer()
    while found == (200, "") and time.monotonic() < deadline:
        found = answer()
    assert found is not None
    assert found[0] == 503
    assert "was deleted while the store was open" in found[1]
    assert crew.stop(server) == [0]
