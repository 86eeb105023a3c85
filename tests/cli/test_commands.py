"""The other commands: queues, workers, stats, doctor, db, policy."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure.cli import faults
from perdure.system.clock import SystemClock, VirtualClock


def test_queues_are_listed_paused_and_resumed(scene: Scene, perdure: Runner) -> None:
    scene.enqueue(queue="mail")
    assert perdure("queues", "pause", "mail", "--reason", "upgrade").stdout == "The queue mail is paused.\n"
    [queue] = perdure.json("queues", "ls")["queues"]
    assert (queue["name"], queue["ready"], queue["is_paused"], queue["pause_reason"]) == ("mail", 1, True, "upgrade")
    assert queue["oldest_ready_age"] > 0
    assert "paused" in perdure("queues", "ls").stdout
    assert "already" in perdure("queues", "pause", "mail").stdout
    assert perdure.json("queues", "resume", "mail") == {"queue": "mail", "is_paused": False, "is_changed": True}


def test_a_pause_with_an_end_is_shown_and_can_be_changed(scene: Scene, perdure: Runner) -> None:
    paused = perdure.json("queues", "pause", "mail", "--for", "10m")
    assert (paused["is_changed"], paused["paused_until"] is not None) == (True, True)
    assert "until" in perdure("queues", "ls").stdout
    later = perdure.json("queues", "pause", "mail", "--until", "2100-01-31T18:00")
    assert (later["is_changed"], later["paused_until"]) == (True, "2100-01-31T18:00:00Z")


@pytest.mark.parametrize(
    "args",
    [["--until", "2001-01-01"], ["--until", "soon"], ["--for", "0s"], ["--for", "1m", "--until", "2100-01-01"]],
    ids=" ".join,
)
def test_a_pause_that_has_no_sense_is_refused(scene: Scene, perdure: Runner, args: list[str]) -> None:
    result = perdure("queues", "pause", "mail", *args)
    assert result.exit_code == faults.USAGE
    assert perdure.json("queues", "ls") == {"queues": []}


def test_settings_of_a_queue_are_set_shown_and_taken_back(scene: Scene, perdure: Runner) -> None:
    limited = ("queues", "set", "mail", "--concurrency", "10", "--max-retries-running", "none", "--strict")
    told = perdure.json(*limited)
    wanted = {"retry_share": None, "strict": True, "max_retries_running": "none", "concurrency": 10}
    assert told == {"queue": "mail", "settings": wanted}
    assert "concurrency=10" in perdure("queues", "ls").stdout
    perdure("queues", "set", "mail", "--retry-share", "0.5", "--unset", "strict", "--unset", "concurrency")
    [queue] = perdure.json("queues", "ls")["queues"]
    assert queue["settings"] == {**wanted, "retry_share": 0.5, "strict": None, "concurrency": None}


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--concurrency", "0"],
        ["--concurrency", "many"],
        ["--retry-share", "1.5"],
        ["--unset", "colour"],
        ["--concurrency", "5", "--unset", "concurrency"],
    ],
    ids=" ".join,
)
def test_settings_that_cannot_be_are_refused(scene: Scene, perdure: Runner, args: list[str]) -> None:
    result = perdure("queues", "set", "mail", *args)
    assert result.exit_code == faults.USAGE
    assert perdure.json("queues", "ls") == {"queues": []}


def origins(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {line["name"]: (line["value"], line["origin"]) for line in document["values"]}


def test_a_queue_is_shown_with_the_place_that_each_value_comes_from(
    scene: Scene, perdure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "limited.py").write_text(
        "from perdure import App\n"
        "app = App()\n"
        "app.queue('mail', retry_share=0.3, concurrency=7, max_retries_running=3)\n"
        "@app.task(queue='mail')\n"
        "def send() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PERDURE_QUEUE_SETTINGS", "mail: concurrency=6, max_retries_running=2")
    perdure("queues", "set", "mail", "--concurrency", "5")
    wanted = {
        "retry_share": ("0.3", "code"),
        "strict": ("no", "default"),
        "max_retries_running": ("2", "environment"),
        "concurrency": ("5", "operator"),
    }
    retry = {"retry": ("none: the app's", "default")}
    assert origins(perdure.json("queues", "show", "mail", "--app", "limited:app")) == wanted | retry
    shown = origins(perdure.json("explain", "send", "--app", "limited:app"))
    assert {name: shown[name] for name in wanted} == wanted
    assert "operator" in perdure("queues", "show", "mail", "--app", "limited:app").stdout


def test_workers_are_listed_alive_and_stale(scene: Scene, perdure: Runner) -> None:
    assert "No worker" in perdure("workers", "ls").stderr
    scene.register(lease=timedelta(hours=1))
    [worker] = perdure.json("workers", "ls")["workers"]
    assert (worker["host"], worker["pid"], worker["is_alive"]) == ("somewhere", 7, True)
    assert "alive" in perdure("workers", "ls").stdout


def test_stats_add_up(scene: Scene, perdure: Runner) -> None:
    scene.dead()
    scene.enqueue(queue="mail")
    stats = perdure.json("stats")
    assert stats["states"] == {"waiting": 0, "ready": 1, "running": 0, "succeeded": 0, "dead": 1, "cancelled": 0}
    assert stats["oldest_ready_age"] >= 60
    assert [queue["name"] for queue in stats["queues"]] == ["default", "mail"]
    assert "oldest ready  1m" in perdure("stats").stdout


def findings(perdure: Runner) -> tuple[int, dict[str, str]]:
    result = perdure("doctor", "--json")
    return result.exit_code, {
        f"{finding['check']} {finding['level']}": finding["text"] for finding in json.loads(result.stdout)["findings"]
    }


def test_the_doctor_finds_nothing_wrong_with_a_new_store(perdure: Runner) -> None:
    code, found = findings(perdure)
    assert code == 0
    assert {"engine ok", "schema ok", "clock ok", "file ok", "queues ok", "dead ok"} <= found.keys()
    assert not any(name.endswith("problem") for name in found)


def test_the_doctor_notes_dead_jobs_and_paused_queues(scene: Scene, perdure: Runner) -> None:
    scene.dead()
    scene.store.deregister(scene.worker).wait()
    scene.store.pause("default", "upgrade").wait()
    code, found = findings(perdure)
    assert code == 0
    assert "1 dead job" in found["dead note"]
    assert "upgrade" in found["queues note"]


def test_the_doctor_finds_silent_workers(scene: Scene, perdure: Runner) -> None:
    scene.register()
    code, found = findings(perdure)
    assert code == 1
    assert "silent since" in found["workers problem"]


def test_the_doctor_finds_jobs_that_nobody_serves(tmp_path: Path) -> None:
    long_ago = Scene(tmp_path / "old.db", VirtualClock(SystemClock().now() - timedelta(hours=1)))
    long_ago.enqueue(queue="mail")
    long_ago.close()
    code, found = findings(Runner(long_ago.url, tmp_path))
    assert code == 1
    assert found["workers problem"] == "1 ready job in mail, and no living worker serves it"


def test_the_doctor_finds_a_file_that_everybody_may_write(perdure: Runner, tmp_path: Path) -> None:
    (tmp_path / "jobs.db").chmod(0o666)
    code, found = findings(perdure)
    assert code == 1
    assert "chmod" in found["file problem"]
    (tmp_path / "jobs.db").chmod(0o644)
    assert "file note" in findings(perdure)[1]


def test_the_doctor_speaks_to_people_too(perdure: Runner) -> None:
    assert "sqlite" in perdure("doctor").stdout


def test_db_status_and_migrate(perdure: Runner, nowhere: Runner, tmp_path: Path) -> None:
    status = perdure.json("db", "status")
    assert status["is_current"]
    assert status["found"] == status["wanted"]
    assert "current" in perdure("db", "status").stdout
    assert nowhere.json("db", "migrate")["is_current"]
    assert (tmp_path / "missing.db").exists()


def test_policy_ls_names_every_preset(perdure: Runner) -> None:
    presets = perdure.json("policy", "ls")["presets"]
    assert len(presets) == 12
    printed = perdure("policy", "ls").stdout
    for preset in presets:
        assert preset["name"] in printed
        assert preset["origin"] in printed
    [immediate] = [preset for preset in presets if preset["aliases"]]
    assert (immediate["name"], immediate["aliases"]) == ("immediate", ["none"])
    assert "immediate or none" in printed
    assert [preset["name"] for preset in presets if preset["caps_jobs"]] == ["harbor"]
    assert presets[0]["total"] == {"least": 0, "expected": 1.75, "greatest": 3.5}


def test_policy_show_takes_an_alias_and_names_the_origin(perdure: Runner) -> None:
    printed = perdure("policy", "show", "none").stdout
    assert "immediate: Retries at once." in printed
    assert "from: Daycry Jobs, strategy none" in printed
    assert perdure.json("policy", "show", "none")["text"] == "fixed(0s)"


def test_policy_show_says_how_long_it_keeps_trying_and_whether_it_caps_jobs(perdure: Runner) -> None:
    standard = perdure("policy", "show", "standard").stdout
    assert "keeps trying  for 0s at least, 1.8s expected, 3.5s at most" in standard
    assert "caps jobs" not in standard
    assert "caps jobs     yes" in perdure("policy", "show", "harbor").stdout
    assert perdure.json("policy", "show", "harbor")["caps_jobs"] is True
    within = perdure("policy", "show", "fixed(10s, jitter=none, max_attempts=50, within=35s)").stdout
    assert "keeps trying  for 30s, plus" in within


@pytest.mark.parametrize(
    ("text", "meant"),
    [("exponential(2s, max_atempts=3)", "max_attempts"), ("patiant", "patient"), ("fixed(5s, jitter=ful)", "full")],
)
def test_a_misspelt_policy_is_answered_with_the_nearest(perdure: Runner, text: str, meant: str) -> None:
    refused = perdure("policy", "show", text)
    assert refused.exit_code == faults.USAGE
    assert f"Did you mean {meant}?" in refused.stderr


def test_policy_show_gives_every_wait_and_the_sums(perdure: Runner) -> None:
    shown = perdure.json("policy", "show", "conservative")
    assert [wait["ceiling"] for wait in shown["waits"]] == [1, 2, 4, 8, 16]
    assert shown["total"] == {"least": 0, "expected": 15.5, "greatest": 31}
    assert shown["max_attempts"] == 6
    printed = perdure("policy", "show", "conservative").stdout
    assert "6 attempts (5 retries)" in printed
    assert "0s / 16s / 31s" in printed


def test_policy_show_draws_the_band_to_scale(perdure: Runner) -> None:
    printed = perdure("policy", "show", "delays([1s, 2s], jitter=equal, max_attempts=3)").stdout
    bands = [line.split()[-1] for line in printed.splitlines() if line.strip().startswith(("1 ", "2 "))]
    assert bands == ["········████┃███", "················████████┃███████"]


def test_policy_show_cuts_long_policies(perdure: Runner) -> None:
    printed = perdure("policy", "show", "fixed(1s, max_attempts=100)", "--limit", "3").stdout
    assert "and 96 more" in printed
    assert perdure("policy", "show", "one-shot").exit_code == 0
    assert "unlimited" in perdure("policy", "show", "fixed(1s, max_attempts=unlimited)").stdout


def test_policy_simulate_compares_with_and_without_jitter(perdure: Runner) -> None:
    args = ("policy", "simulate", "exponential(4s, max_attempts=8)", "--jobs", "200", "--fail-for", "30s")
    run = perdure.json(*args)
    assert run["without_jitter"]["peak_per_second"] == 200
    assert run["with_jitter"]["peak_per_second"] < 200
    assert run["without_jitter"]["succeeded"] == 200
    assert sum(span["with_jitter"] for span in run["attempts"]) == run["with_jitter"]["attempts"]
    assert perdure.json(*args) == run
    assert perdure.json(*args, "--seed", "2") != run
    assert "200 succeeded" in perdure(*args).stdout


def test_policy_commands_need_no_store(nowhere: Runner) -> None:
    for args in (["ls"], ["show", "standard"], ["simulate", "standard", "--jobs", "3"]):
        assert nowhere("policy", *args).exit_code == 0
    assert list(nowhere.directory.iterdir()) == []
