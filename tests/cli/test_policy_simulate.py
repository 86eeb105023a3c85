"""`perdure policy simulate` with loads, scenarios, comparisons and pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import Runner

LOAD = ("policy", "simulate", "standard", "--rate", "20", "--duration", "10s", "--slots", "2", "--outage", "2s-5s")


def test_a_load_is_shown_over_time_with_totals_and_the_bound(nowhere: Runner) -> None:
    printed = nowhere(*LOAD).stdout
    assert "20 jobs per second for 10s" in printed
    assert "every attempt that starts from 2s to 5s fails" in printed
    assert "bound        kept: at most 200 jobs to be retried at once" in printed
    assert "600 retries in all" in printed


def test_json_has_the_scenario_the_totals_and_every_bucket(nowhere: Runner) -> None:
    found = nowhere.json(*LOAD)
    assert found["scenario"]["rate"] == 20
    assert found["scenario"]["outage"] == [2, 5]
    assert found["succeeded"] + found["dead"] == found["jobs"] == 200
    assert sum(bucket["attempts"] for bucket in found["buckets"]) == found["attempts"]
    assert found["bound"] == {"at_once": 200, "in_all": 600, "is_kept": True}
    assert nowhere.json(*LOAD) == found
    assert nowhere.json(*LOAD, "--seed", "2")["buckets"] != found["buckets"]


def test_every_option_reaches_the_scenario(nowhere: Runner) -> None:
    found = nowhere.json(
        "policy", "simulate", "standard", "--batch", "1s:5:9", "--batch", "0:7", "--workers", "2", "--slots", "3",
        "--prefetch", "4", "--fetch", "5", "--run-time", "20ms", "--exponential", "--failure-time", "1s",
        "--outage-hits", "0.5", "--outage", "0-2s", "--failure-rate", "0.5,0.1", "--capacity", "50", "--strict",
        "--retry-share", "0.3", "--max-retries-running", "2",
        "--retry-queue", "later", "--retry-workers", "2", "--retry-slots", "1",
        "--concurrency", "4", "--max-attempts", "3",
        "--bucket", "500ms", "--until", "1h", "--seed", "9", "--most-attempts", "5000",
    )["scenario"]  # fmt: skip
    assert found == {
        "policy": "exponential(500ms, cap=30s)",
        "max_attempts": 3,
        "rate": 0,
        "duration": 60,
        "batches": [[1, 5, 9], [0, 7, 0]],
        "workers": 2,
        "slots": 3,
        "prefetch": 4,
        "batch": 5,
        "run_time": 0.02,
        "run_times": "exponential",
        "failure_time": 1,
        "outage": [0, 2],
        "outage_hits": 0.5,
        "failure_rate": [0.5, 0.1],
        "capacity": 50,
        "retry_share": 0.3,
        "strict": True,
        "max_retries_running": 2,
        "retry_queue": "later",
        "retry_workers": 2,
        "retry_slots": 1,
        "concurrency": 4,
        "lanes": True,
        "bucket": 0.5,
        "until": 3600,
        "seed": 9,
    }


def test_a_scenario_can_be_changed_by_options(nowhere: Runner) -> None:
    plain = nowhere.json("policy", "simulate", "--scenario", "worst-case")
    assert plain["bound"]["is_kept"]
    assert plain["dead"] == 0
    changed = nowhere.json("policy", "simulate", "one-shot", "--scenario", "worst-case", "--retry-share", "0.5")
    assert changed["retry_starts"] == 0
    assert changed["scenario"]["retry_share"] == 0.5
    assert changed["scenario"]["rate"] == plain["scenario"]["rate"]


def test_the_worst_case_is_printed_with_its_bound(nowhere: Runner) -> None:
    printed = nowhere("policy", "simulate", "--scenario", "worst-case").stdout
    assert "kept: at most 4,800 jobs to be retried at once" in printed
    assert "14,400 retries in all" in printed


def test_a_comparison_has_every_mechanism_with_and_without_jitter(nowhere: Runner) -> None:
    found = nowhere.json(*LOAD, "--compare")["comparison"]
    assert [(one["mechanism"], one["jitter"]) for one in found] == [
        (mechanism, is_jittered)
        for is_jittered in (True, False)
        for mechanism in ("none", "share", "retry queue", "cap")
    ]
    assert len({one["fresh_waits"]["mean"] for one in found}) > 1
    printed = nowhere(*LOAD, "--compare").stdout
    assert "MECHANISM" in printed
    assert "How long the oldest ready fresh job has waited:" in printed


def test_slow_failures_need_a_cap_or_own_workers(nowhere: Runner) -> None:
    found = nowhere.json("policy", "simulate", "--scenario", "slow-failures", "--compare", "--bucket", "5s")[
        "comparison"
    ]
    most = {one["mechanism"]: one["fresh_waits"]["greatest"] for one in found if one["jitter"]}
    assert min(most["none"], most["share"]) > 15
    assert max(most["retry queue"], most["cap"]) < 2


@pytest.mark.parametrize("args", [(*LOAD, "--compare"), ("policy", "simulate", "standard", "--jobs", "20")])
def test_pictures_are_the_same_each_time_and_say_nothing_of_the_machine(nowhere: Runner, args: tuple[str, ...]) -> None:
    drawn = []
    for name in ("one.svg", "two.SVG"):
        assert nowhere(*args, "--plot", str(nowhere.directory / name)).exit_code == 0
        drawn.append((nowhere.directory / name).read_text(encoding="utf-8"))
    assert drawn[0] == drawn[1]
    ElementTree.fromstring(drawn[0])
    assert "dc:date" not in drawn[0]
    assert str(Path.home()) not in drawn[0]
    assert str(nowhere.directory) not in drawn[0]


def test_pictures_may_be_png(nowhere: Runner) -> None:
    picture = nowhere.directory / "load.png"
    assert nowhere(*LOAD, "--plot", str(picture)).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(nowhere: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = nowhere(*LOAD, "--plot", "load.png")
    assert result.exit_code == 4
    assert "perdure[plot]" in result.stderr
    assert nowhere(*LOAD).exit_code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "nothing to simulate"),
        (["standard", "--rate", "5", "--plot", "load.pdf"], "only .png and .svg"),
        (["standard", "--plot", "load"], "only .png and .svg"),
        (["standard", "--batch", "soon:5"], "a batch's moment"),
        (["standard", "--batch", "5s"], "A batch is"),
        (["standard", "--batch", "5s:many"], "--batch"),
        (["standard", "--outage", "5s"], "--outage"),
        (["standard", "--outage", "9s-5s"], "ends before it begins"),
        (["standard", "--outage", "1s-5s", "--fail-for", "5s"], "--fail-for and --outage"),
        (["standard", "--rate", "0"], "No job arrives"),
        (["standard", "--rate", "x"], "--rate"),
        (["standard", "--failure-rate", "2"], "failure_rate is 2"),
        (["standard", "--failure-rate", "often"], "--failure-rate"),
        (["standard", "--slots", "0"], "--slots"),
        (["standard", "--retry-queue", "a b"], "retry_queue"),
        (["standard", "--rate", "1000000"], "attempts"),
        (["no-such-policy"], "no-such-policy"),
        (["--scenario", "armageddon"], "--scenario"),
    ],
)
def test_bad_input_is_told_and_exits_with_2(nowhere: Runner, args: list[str], said: str) -> None:
    result = nowhere("policy", "simulate", *args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("policy", "asked", "attempts"),
    [
        ("fixed(1s, max_attempts=10, caps_jobs=true)", "20", 10),
        ("fixed(1s, max_attempts=10, caps_jobs=true)", "unlimited", 10),
        ("fixed(1s, max_attempts=10, caps_jobs=true)", "5", 5),
        ("fixed(1s, max_attempts=10)", "20", 20),
        ("one-shot", "5", 1),
    ],
)
def test_jobs_that_ask_for_a_limit_are_simulated_by_the_real_rules(
    nowhere: Runner, policy: str, asked: str, attempts: int
) -> None:
    args = ("policy", "simulate", policy, "--jobs", "3", "--fail-for", "1h", "--max-attempts", asked)
    found = nowhere.json(*args)
    assert (found["with_jitter"]["attempts"], found["with_jitter"]["dead"]) == (3 * attempts, 3)


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "1.5", "2000000"])
def test_limits_that_are_no_limits_are_refused(nowhere: Runner, wrong: str) -> None:
    refused = nowhere("policy", "simulate", "standard", "--max-attempts", wrong)
    assert refused.exit_code == 2
    assert "max" in refused.stderr
