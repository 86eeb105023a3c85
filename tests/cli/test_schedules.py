"""`perdure schedules`: what it lists, adds, shows, foretells, runs, pauses, resumes and removes."""

from __future__ import annotations

import itertools
from datetime import datetime
from pathlib import Path

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

APP = """
from perdure import App
app = App()

@app.task(queue="mail")
def send(to: str) -> None: ...
"""


def add(perdure: Runner, name: str = "nightly", *more: str) -> None:
    result = perdure("schedules", "add", name, "send", "to=ada", "--cron", "0 0 3 * * *", *more)
    assert result.exit_code == 0, result.output


def test_an_added_schedule_is_listed_and_shown(scene: Scene, perdure: Runner) -> None:
    add(perdure, "nightly", "--tz", "Europe/Berlin", "--queue", "mail")
    heading, line = perdure("schedules", "ls").stdout.splitlines()
    assert heading.split()[:4] == ["SCHEDULE", "STATE", "RULE", "ZONE"]
    assert line.startswith("nightly   active  0 0 3 * * *  Europe/Berlin")
    shown = perdure.json("schedules", "show", "nightly")
    assert (shown["args"], shown["queue"], shown["origin"]) == ({"kwargs": {"to": "ada"}}, "mail", "operator")
    assert len(shown["next_ticks"]) == 5
    text = perdure("schedules", "show", "nightly").stdout
    assert "0 0 3 * * * (at 03:00:00 every day)" in text
    assert "next ticks" in text


def test_a_schedule_of_a_request_needs_no_task(scene: Scene, perdure: Runner) -> None:
    rest = ("--cron", "@every 30s", "--max-retries", "2")
    result = perdure("schedules", "add", "ping", "--http", "POST", "https://example.com/ping", 'json={"a": 1}', *rest)
    assert (result.exit_code, "warning" in result.stderr.lower()) == (0, False), result.output
    shown = perdure.json("schedules", "show", "ping")
    request = {"method": "POST", "url": "https://example.com/ping", "json": {"a": 1}}
    assert (shown["task"], shown["args"], shown["max_attempts"]) == ("http", {"kwargs": request}, 3)
    assert perdure("schedules", "add", "x", "--http", "GET", "nowhere", "--cron", "@hourly").exit_code == 2
    assert perdure("schedules", "add", "x", "--http", "GET", "https://a.example/", "send", *rest).exit_code == 2
    assert perdure("schedules", "add", "x", "--cron", "@hourly").exit_code == 2


def test_ls_of_nothing_says_how_to_make_one(scene: Scene, perdure: Runner) -> None:
    result = perdure("schedules", "ls")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "perdure schedules add" in result.stderr


def test_ls_pages(scene: Scene, perdure: Runner) -> None:
    for name in "abc":
        add(perdure, name)
    first = perdure.json("schedules", "ls", "--limit", "2")
    rest = perdure.json("schedules", "ls", "--limit", "2", "--cursor", first["next_cursor"])
    assert [one["name"] for one in first["schedules"] + rest["schedules"]] == ["a", "b", "c"]
    assert "--cursor b" in perdure("schedules", "ls", "--limit", "2").stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cron", "61 * * * *"], "The minute (field 1 of 5)"),
        (["--cron", "@every 1ms"], "shorter than a second"),
        (["--cron", "@daily", "--tz", "Mars/Base"], "Mars/Base"),
        (["--cron", "@daily", "--retry", "nonsense("], "nonsense"),
        (["--cron", "@daily", "--max-attempts", "0"], "max_attempts"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2_and_nothing_is_stored(
    scene: Scene, perdure: Runner, options: list[str], said: str
) -> None:
    result = perdure("schedules", "add", "bad", "send", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert perdure.json("schedules", "ls")["schedules"] == []


def test_another_schedule_of_the_name_is_refused_unless_it_is_to_be_replaced(scene: Scene, perdure: Runner) -> None:
    add(perdure)
    other = ("schedules", "add", "nightly", "send", "--cron", "@hourly")
    assert perdure(*other).exit_code == 4
    assert perdure(*other, "--replace").exit_code == 0
    assert perdure.json("schedules", "show", "nightly")["cron"] == "@hourly"


def test_a_dry_run_of_add_shows_the_ticks_and_stores_nothing(nowhere: Runner) -> None:
    found = nowhere.json("schedules", "add", "x", "send", "--cron", "@hourly", "--dry-run")
    assert len(found["ticks"]) == 5
    assert not Path(nowhere.url.removeprefix("sqlite:///")).exists()


def test_with_an_app_the_task_is_checked_and_gives_its_queue(scene: Scene, perdure: Runner) -> None:
    (perdure.directory / "mailing.py").write_text(APP)
    fits = perdure.process("schedules", "add", "ok", "send", "to=ada", "--cron", "@daily", "--app", "mailing", "--json")
    assert fits.returncode == 0, fits.stderr
    assert '"queue": "mail"' in fits.stdout
    wrong = perdure.process("schedules", "add", "bad", "sned", "--cron", "@daily", "--app", "mailing")
    assert (wrong.returncode, "Did you mean 'send'?" in wrong.stderr) == (2, True)
    unfit = perdure.process("schedules", "add", "bad", "send", "x=1", "--cron", "@daily", "--app", "mailing")
    assert unfit.returncode == 2


def test_next_of_a_bare_rule_opens_no_store(nowhere: Runner) -> None:
    found = nowhere.json("schedules", "next", "*/10 * * * * *", "--tz", "Asia/Tokyo", "-n", "3")
    ticks = [datetime.fromisoformat(tick) for tick in found["ticks"]]
    assert [(second - first).total_seconds() for first, second in itertools.pairwise(ticks)] == [10, 10]
    assert found["description"] == "every 10 seconds"
    lines = nowhere("schedules", "next", "@daily", "--tz", "Asia/Tokyo", "-n", "2").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["00:00:00+09:00"] * 2


def test_next_of_a_schedule_is_in_its_own_time_zone(scene: Scene, perdure: Runner) -> None:
    add(perdure, "nightly", "--tz", "Asia/Tokyo")
    result = perdure("schedules", "next", "nightly", "-n", "2")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["03:00:00+09:00"] * 2
    assert perdure("schedules", "next", "nightly", "--tz", "UTC").exit_code == 2
    perdure("schedules", "pause", "nightly")
    assert "paused" in perdure("schedules", "next", "nightly").stderr


@pytest.mark.parametrize("rule", ["* * *", "@sometimes", "* * * * * * *"])
def test_next_of_a_rule_that_cannot_be_read_is_a_usage_error(nowhere: Runner, rule: str) -> None:
    assert nowhere("schedules", "next", rule).exit_code == 2


def test_pause_and_resume_say_what_they_did(scene: Scene, perdure: Runner) -> None:
    add(perdure)
    assert perdure("schedules", "pause", "nightly").stdout == "The schedule nightly is paused.\n"
    assert perdure("schedules", "pause", "nightly").stdout == "The schedule nightly was paused already.\n"
    assert perdure.json("schedules", "resume", "nightly") == {
        "name": "nightly",
        "is_paused": False,
        "is_changed": True,
    }


def test_run_makes_a_job_that_is_found_by_its_schedule(scene: Scene, perdure: Runner) -> None:
    add(perdure)
    made = perdure.json("schedules", "run", "nightly", "--yes")
    (job,) = perdure.json("jobs", "ls", "--schedule", "nightly")["jobs"]
    assert (job["id"], job["schedule"], job["tick_at"]) == (made["id"], "nightly", None)
    assert "nightly (run by hand)" in perdure("jobs", "show", job["id"]).stdout
    assert perdure("schedules", "run", "nightly", "--yes").exit_code == 4


@pytest.mark.parametrize("command", ["run", "rm"])
def test_run_and_rm_ask_first_and_say_what_they_would_do(scene: Scene, perdure: Runner, command: str) -> None:
    add(perdure)
    assert perdure("schedules", command, "nightly").exit_code == 4
    assert "would be" in perdure("schedules", command, "nightly", "--dry-run").stdout
    assert perdure.json("schedules", command, "nightly", "--dry-run") == {"name": "nightly", "is_dry_run": True}
    assert perdure.json("jobs", "ls")["jobs"] == []
    assert len(perdure.json("schedules", "ls")["schedules"]) == 1


def test_rm_removes(scene: Scene, perdure: Runner) -> None:
    add(perdure)
    assert perdure("schedules", "rm", "nightly", "--yes").exit_code == 0
    assert perdure("schedules", "show", "nightly").exit_code == 3


@pytest.mark.parametrize("command", ["show", "pause", "resume", "rm", "run", "next"])
def test_a_name_that_nobody_has_is_exit_code_3(scene: Scene, perdure: Runner, command: str) -> None:
    result = perdure("schedules", command, "nobody")
    assert result.exit_code == 3
    assert "No schedule is named 'nobody'." in result.stderr
