"""The bench runs, measures what it says, and knows when it could not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from bench.catalogue import ENGINES, EVERYBODY, RAW, Peer
from bench.ground import FailedError
from bench.processors import Processors
from bench.report import BUSY, Figure, markdown
from bench.servers import started
from bench.tally import Tally
from bench.targets import judge
from bench.works import Course

from bench import allocator, servers

ROOT = Path(__file__).parents[2]


def test_a_quick_run_gives_a_table_figures_and_a_picture(tmp_path: Path) -> None:
    works = "enqueue-bulk,drain1"
    command = [sys.executable, "-m", "bench", "--quick", "--engines", "sqlite", "--works", works]
    done = subprocess.run(
        [*command, "--output", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("| perdure | ") for line in lines)
    assert any(line.startswith("| raw | ") for line in lines)
    assert any(line.startswith("| sqlite | drain ÷ raw engine | ") for line in lines)
    figures = json.loads((tmp_path / "bench.json").read_text())
    measured = {(each["peer"], each["name"]) for each in figures if each["value"] and "busy" not in each["name"]}
    assert measured == {(peer, name) for peer in ("perdure", "raw") for name in ("enqueue in bulk", "drain 1 async")}
    assert (tmp_path / "bench.md").read_text() == done.stdout
    assert "<svg" in (tmp_path / "bench.svg").read_text()


def test_a_busy_process_is_seen_on_the_processors_and_a_short_time_says_nothing() -> None:
    assert Processors().busy() is None
    processors = Processors()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    busy = processors.busy()
    # Whatever else the machine does comes on top.
    assert busy is not None
    assert 0.5 <= busy <= (os.cpu_count() or 1)


def test_the_settings_say_which_allocator_the_redis_server_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "jemalloc", lambda: None)
    with closing(servers.Redis()) as server:
        assert server.settings.endswith("the C library's allocator")
        assert server.fresh().startswith("redis://127.0.0.1:")


def test_a_machine_that_has_no_jemalloc_and_cannot_get_it_does_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(allocator, "FOLDER", tmp_path)
    allocator.provide()
    assert allocator.jemalloc() is None
    kept = tmp_path / allocator.PACKAGE / "usr" / "lib" / "here" / "libjemalloc.so.2"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert allocator.jemalloc() == (str(kept) if sys.platform == "linux" else None)


def test_what_an_adapter_has_not_is_a_reason_and_not_a_figure() -> None:
    with started(("sqlite",)) as servers:
        course = Course(engine="sqlite", server=servers["sqlite"], jobs=20, seconds=5.0)
        with course.ground(RAW, 20) as ground, pytest.raises(FailedError, match=r"has no enqueue_at"):
            ground.enqueue("enqueue_at", "noop_async")


def test_what_could_not_be_measured_stands_in_the_report_with_its_reason() -> None:
    figures = [
        Figure("redis", "drain1", "perdure", 0, "drain 1 async", 900.0, 100),
        Figure("redis", "drain1", "huey", 0, "drain1", None, 0, ("could not be installed",)),
    ]
    text = markdown(figures, judge(figures), {"redis": "as it is"}, {}, "")
    assert "- huey, drain1: could not be measured: could not be installed" in text
    assert "| redis | drain ÷ fastest at-least-once peer | – | – | – | ≥ 10 | not measured |" in text


def test_ratios_are_taken_round_by_round() -> None:
    values = {"perdure": (100.0, 50.0, 80.0), "raw": (200.0, 100.0, 100.0)}
    figures = [
        Figure("sqlite", "drain1", peer, number, "drain 1 async", value, 10)
        for peer, rounds in values.items()
        for number, value in enumerate(rounds)
    ]
    verdict = next(each for each in judge(figures) if each.what == "drain ÷ raw engine")
    assert (verdict.ratio, verdict.verdict) == ("0.5 (0.5–0.8)", "met")


def test_a_peer_that_may_lose_jobs_is_no_measure_for_those_that_do_not() -> None:
    figures = [
        Figure("redis", "drain1", peer, 0, "drain 1 async", value, 10)
        for peer, value in (("perdure", 1000.0), ("huey", 900.0), ("dramatiq", 50.0))
    ]
    verdict = next(each for each in judge(figures) if "at-least-once" in each.what)
    assert (verdict.other, verdict.verdict) == ("dramatiq 50", "met")


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        (1.6, "missed: one kept 1.6 of 2 processors busy, which leaves room for 1.25"),
        (1.2, "missed"),
    ],
)
def test_a_second_process_that_found_the_processors_busy_is_told_so(
    busy: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    named = {"drain 1 async": 100.0, "drain 2 async": 110.0, f"{BUSY}drain 1 async": busy}
    figures = [Figure("redis", "drain", "perdure", 0, name, value, 10) for name, value in named.items()]
    verdict = next(each for each in judge(figures) if each.what == "two processes ÷ one")
    assert (verdict.ratio, verdict.verdict) == ("1.1", said)


def test_the_tally_counts_jobs_and_runs(tmp_path: Path) -> None:
    tally = Tally.make(tmp_path / "tally", 10)
    tally.runs[3] = 1
    tally.runs[7] = 3
    again = Tally(tmp_path / "tally")
    assert (again.jobs, again.done(), again.done(3)) == (10, 2, 1)


@pytest.mark.parametrize("peer", EVERYBODY, ids=lambda peer: peer.name)
def test_every_peer_has_an_adapter_pins_and_a_word_about_its_settings(peer: Peer) -> None:
    for engine in peer.engines:
        assert engine in ENGINES
        assert (ROOT / "bench" / "peers" / f"{peer.adapter(engine)}.py").exists()
    assert all("==" in package for package in peer.packages)
    assert peer.note
