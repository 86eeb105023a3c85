"""`perdure bench`: what it measures and says on every engine; that nothing of it is left and nothing else touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import Runner
from tests.conformance.conftest import ENGINES, Engine

from perdure import App
from perdure.cli import faults
from perdure.cli.bench import store as bench_store
from perdure.cli.bench.measure import Counting, Figures, Speed, measure
from perdure.cli.bench.store import Place, bench_place
from perdure.cli.bench.verdict import verdict
from perdure.cli.main import root
from perdure.errors import EngineError
from perdure.store.jobs import Want
from perdure.store.reads import JobFilter

SHARED = [engine for engine in ENGINES if engine.name != "sqlite-memory"]


@pytest.fixture(params=SHARED, ids=[engine.name for engine in SHARED])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


@pytest.fixture
def app(engine: Engine, tmp_path: Path) -> Iterator[App]:
    """An app of the user's, with jobs in every state that a bench could disturb."""
    made = App(engine.make_url(tmp_path), auto_migrate=True)
    made.enqueue_named("theirs", [], {}, queue="theirs")
    made.enqueue_named("theirs", [], {}, queue="theirs", delay="1ms")
    gone = made.enqueue_named("theirs", [], {}, queue="theirs")
    made.client().cancel(gone)
    yield made
    made.close()


def everything(app: App) -> Any:
    """All jobs, queues, workers and schedules of the store."""
    store = app.store
    return (
        store.list(JobFilter(), limit=500).wait(),
        [msgspec.structs.replace(queue, oldest_ready_at=None) for queue in store.queues().wait()],
        store.workers().wait(),
        store.schedules(limit=100).wait(),
    )


def run(app: App, *args: str) -> Result:
    return CliRunner().invoke(root, ["bench", app.settings.url, *args], catch_exceptions=False)


def test_it_measures_every_part_and_leaves_all_as_it_was(app: App, tmp_path: Path) -> None:
    before, files = everything(app), sorted(os.listdir(tmp_path))
    result = run(app, "--jobs", "40", "--seconds", "30", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["engine"] == app.store.capabilities.engine
    assert (found["enqueue_single"]["jobs"], found["enqueue_bulk"]["jobs"], found["run"]["jobs"]) == (4, 36, 40)
    assert all(found[part]["jobs_per_second"] > 0 for part in ("enqueue_single", "enqueue_bulk", "run"))
    assert found["start_samples"] == 40
    assert 0 < found["start_p50"] <= found["start_p99"]
    assert found["round_trip"] > 0
    assert found["enqueue_median"] > 0
    assert not found["is_cut"]
    assert found["verdict"]
    assert everything(app) == before
    assert sorted(os.listdir(tmp_path)) == files


def test_for_people_it_prints_a_table_and_what_it_means(app: App) -> None:
    result = run(app, "--jobs", "20")
    assert result.exit_code == 0, result.output
    assert "enqueue in bulk" in result.stdout
    assert "p99" in result.stdout
    assert "what it means\n- " in result.stdout
    assert result.stderr == ""


def test_what_was_not_done_when_the_time_is_up_is_gone_too(app: App) -> None:
    before = everything(app)
    with bench_place(app.settings.url, counting := Counting()) as place:
        found = measure(place, counting, jobs=2000, seconds=0.05, tell=lambda _: None)
    assert found.is_cut
    assert found.drain.jobs < 2000
    assert everything(app) == before


def test_jobs_that_never_ran_and_jobs_of_a_worker_that_vanished_are_gone_too(app: App) -> None:
    before = everything(app)
    with bench_place(app.settings.url, Counting()) as place:
        store = place.app.store
        store.enqueue(place.new_jobs("noop", 10)).wait()
        worker = place.app.surroundings.ids.worker()
        lease = timedelta(minutes=1)
        store.register(
            worker, host="here", pid=1, queues=(place.queue,), concurrency=1, version="0", lease=lease
        ).wait()
        assert len(store.fetch(worker, [Want(queue=place.queue, count=4)], 4).wait().jobs) == 4
    assert everything(app) == before


def test_the_work_of_other_workers_is_left_to_them(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    store = app.store
    app.client().add_schedule("theirs", "theirs", cron="@every 1s", queue="theirs")
    worker = app.surroundings.ids.worker()
    lease = timedelta(milliseconds=100)
    store.register(worker, host="gone", pid=1, queues=("theirs",), concurrency=1, version="0", lease=lease).wait()
    assert len(store.fetch(worker, [Want(queue="theirs", count=1)], 1).wait().jobs) == 1
    deadline = time.monotonic() + 60
    while not store.due(10).wait().schedules or store.workers().wait()[0].lease_until > store.now().wait():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    # A vanished worker, a due job, a due schedule and what may be pruned: all wait for a worker, and not for this one.
    monkeypatch.setenv("PERDURE_RETENTION", "0s")
    before = everything(app)
    with bench_place(app.settings.url, counting := Counting()) as place:
        found = measure(place, counting, jobs=5, seconds=30, tell=lambda _: None)
    assert found.drain.jobs == 5
    assert everything(app) == before


@pytest.mark.parametrize(
    ("number", "when_interrupted", "jobs", "is_running"),
    [
        (signal.SIGINT, signal.SIG_DFL, 1_000_000, False),
        (signal.SIGTERM, signal.SIG_DFL, 2000, True),
        (signal.SIGTERM, signal.SIG_IGN, 1_000_000, False),
    ],
)
def test_broken_off_it_tidies_up_all_the_same(
    app: App, tmp_path: Path, number: signal.Signals, when_interrupted: signal.Handlers, jobs: int, is_running: bool
) -> None:
    before, files = everything(app), sorted(os.listdir(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", "bench", app.settings.url, "--jobs", str(jobs), "--seconds", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What this process ignores its children would ignore too; in the background of a shell that is SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, when_interrupted),
    )
    deadline = time.monotonic() + 60
    # On a server the worker is seen from outside; a file of its own is all that is seen on SQLite.
    while (
        not (app.store.workers().wait() if is_running else everything(app) != before)
        and sorted(os.listdir(tmp_path)) == files
    ):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (faults.INTERRUPTED, "")
    assert "Traceback" not in err
    assert "interrupted" in err
    assert everything(app) == before
    assert sorted(os.listdir(tmp_path)) == files


def test_a_store_in_memory_can_be_measured() -> None:
    result = CliRunner().invoke(root, ["bench", "sqlite://", "--jobs", "20", "--json"])
    assert result.exit_code == 0, result.output
    assert "in memory" in json.loads(result.stdout)["verdict"][0]


def test_without_a_store_yet_no_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(root, ["bench", "--jobs", "10", "--json"])
    assert result.exit_code == 0, result.output
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["postgresql://127.0.0.1:1/x?connect_timeout=2"], faults.UNREACHABLE, "error: "),
        (["redis://127.0.0.1:1/0"], faults.UNREACHABLE, "error: "),
        (["sqlite:////no/such/dir/x.db"], faults.UNREACHABLE, "/no/such/dir"),
        (["mysql://x"], faults.USAGE, "mysql"),
        (["sqlite://", "--url", "sqlite://"], faults.USAGE, "twice"),
        (["sqlite://", "--jobs", "0"], faults.USAGE, "--jobs"),
        (["sqlite://", "--jobs", "1000001"], faults.USAGE, "--jobs"),
        (["sqlite://", "--seconds", "0"], faults.USAGE, "--seconds"),
    ],
)
def test_what_cannot_be_measured_is_told_in_words(args: list[str], code: int, words: str) -> None:
    result = CliRunner().invoke(root, ["bench", *args])
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_on_a_terminal_there_is_a_bar_while_it_measures(perdure: Runner) -> None:
    code, screen = perdure.terminal("bench", "--jobs", "20")
    assert code == 0, screen
    assert "measuring" in screen
    assert "what it means" in screen


def test_jobs_that_cannot_be_removed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("sqlite://")
    place = Place(app, "perdure-bench-x")
    app.store.enqueue(place.new_jobs("noop", 3)).wait()
    monkeypatch.setattr(type(app.store), "prune", lambda *_: bench_store.Answered(0))
    monkeypatch.setattr(type(app.store), "now", lambda *_: bench_store.Answered(bench_store.LongAgo().now()))
    with pytest.raises(EngineError, match="3 jobs of the bench are still in the queue perdure-bench-x"):
        place.clear(app.store)
    app.close()


def test_by_the_store_s_own_clock_nothing_is_pruned() -> None:
    app = App("sqlite://")
    cancelled = app.enqueue_named("theirs", [], {})
    app.client().cancel(cancelled)
    with pytest.raises(EngineError, match="does not take the clock"):
        Place(app, "perdure-bench-x").clear(app.store)
    assert app.client().get(cancelled).state == "cancelled"
    app.close()


def figures(**given: Any) -> Figures:
    speed = Speed(jobs=100, elapsed=0.1)
    values: dict[str, Any] = {
        "engine": "postgres",
        "version": "18",
        "durability": "",
        "is_shared": True,
        "round_trip": 0.0001,
        "commit": 0.004,
        "single": Speed(jobs=100, elapsed=1.0),
        "bulk": speed,
        "drain": speed,
        "drain_cpu": 0.2,
        "concurrency": 50,
        "starts": (0.001, 0.002),
        "is_cut": False,
    }
    return Figures(**{**values, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"engine": "sqlite"}, "waits for an fsync"),
        ({"engine": "sqlite", "commit": 0.00005}, "survives a power loss"),
        ({"engine": "sqlite", "is_shared": False}, "in memory"),
        ({}, "synchronous_commit"),
        ({"engine": "redis"}, "appendfsync"),
        ({"round_trip": 0.003}, "near the server"),
        ({}, "10 times as fast"),
        ({"bulk": Speed(jobs=100, elapsed=1.0)}, "Batches gain little"),
        ({}, "waits for the engine"),
        ({"drain_cpu": 0.9}, "--processes"),
        ({"drain_cpu": 0.9, "engine": "sqlite"}, "one writer"),
        ({"drain": Speed(jobs=0, elapsed=1.0)}, "more with --seconds"),
        ({}, "within 1.00ms, and nearly always within 2.00ms"),
        ({"starts": (0.001, 0.4)}, "only after 400ms"),
    ],
)
def test_the_verdict_follows_from_the_figures(given: dict[str, Any], words: str) -> None:
    assert words in " ".join(verdict(figures(**given)))


def test_where_nothing_was_timed_nothing_is_said_about_starts() -> None:
    assert "idle worker" not in " ".join(verdict(figures(starts=())))


def test_percentiles_are_of_the_samples() -> None:
    found = figures(starts=tuple(n / 1000 for n in range(1, 101)))
    assert (found.start(0.5), found.start(0.99), found.start(1)) == (0.05, 0.099, 0.1)
    assert figures(starts=(0.7,)).start(0.5) == 0.7
