"""`perdure jobs` with the id of a job that was made with a schedule."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure.model.job import format_id, make_id
from perdure.model.schedule.definition import Definition, new_schedule

BOTH = pytest.mark.parametrize("is_recurring", [True, False], ids=["recurring", "one-shot"])


def schedule(scene: Scene, *, is_recurring: bool, number: int = 1) -> str:
    """A job with a schedule, as the API makes it."""
    name = format_id(make_id(scene.clock.now() - timedelta(hours=1), number, 0))
    known = Definition(name=name, task="http", args=b"{}", cron="0 0 3 1 1 *", is_recurring=is_recurring)
    assert scene.store.put_schedule(new_schedule(known, "operator", scene.clock.now()), None).wait()
    return name


@BOTH
def test_ls_and_show_know_it_before_its_first_run(scene: Scene, perdure: Runner, is_recurring: bool) -> None:
    job_id = schedule(scene, is_recurring=is_recurring)
    assert [job["id"] for job in perdure.json("jobs", "ls")["jobs"]] == [job_id]
    assert job_id in perdure("jobs", "ls").stdout
    result = perdure("jobs", "show", job_id)
    assert result.exit_code == 0
    assert "waiting (scheduled)" in result.stdout
    assert "0 0 3 1 1 * (at 03:00:00 on day 1 of January), active" in result.stdout
    assert "none yet" in result.stdout
    shown = perdure.json("jobs", "show", job_id)
    assert (shown["id"], shown["state"], shown["attempts"]) == (job_id, "waiting", [])
    assert (shown["cron"], shown["is_recurring"], shown["last_run_id"]) == ("0 0 3 1 1 *", is_recurring, None)
    assert shown["next_tick_at"] == shown["run_at"]


@BOTH
def test_retry_runs_it_and_show_tells_of_its_run(scene: Scene, perdure: Runner, is_recurring: bool) -> None:
    job_id = schedule(scene, is_recurring=is_recurring)
    assert perdure("jobs", "retry", job_id).stdout == f"{job_id}  ready\n"
    scene.clock.advance(timedelta(minutes=2))
    (run,) = scene.run()
    assert (run.schedule, run.id == job_id) == (job_id, not is_recurring)
    scene.fail(run)
    shown = perdure.json("jobs", "show", job_id)
    assert (shown["id"], shown["state"], shown["failures"]) == (job_id, "waiting", 1)
    assert (shown["last_run_id"], len(shown["attempts"])) == (run.id, 1)
    assert shown["cron"] == "0 0 3 1 1 *"
    assert (run.id in perdure("jobs", "show", job_id).stdout) is True
    listed = [job["id"] for job in perdure.json("jobs", "ls")["jobs"]]
    assert listed == ([run.id, job_id] if is_recurring else [job_id])


@BOTH
def test_cancel_ends_it_and_retry_brings_it_back(scene: Scene, perdure: Runner, is_recurring: bool) -> None:
    job_id = schedule(scene, is_recurring=is_recurring)
    assert perdure("jobs", "cancel", job_id).stdout == f"{job_id}  cancelled\n"
    assert perdure.json("jobs", "show", job_id)["state"] == "cancelled"
    assert perdure("jobs", "cancel", job_id).stdout == f"{job_id}  already cancelled\n"
    assert perdure("schedules", "show", job_id).exit_code == 3
    assert perdure("schedules", "rm", job_id, "--yes").exit_code == 3
    assert perdure("schedules", "ls").stdout == ""
    assert perdure("jobs", "retry", job_id).exit_code == 0
    assert perdure("schedules", "show", job_id).exit_code == 0


def test_many_are_cancelled_at_once(scene: Scene, perdure: Runner) -> None:
    ids = [schedule(scene, is_recurring=True), schedule(scene, is_recurring=False, number=2), scene.enqueue()]
    answers = perdure.json("jobs", "cancel", *ids, "--yes")["answers"]
    assert {answer["id"]: answer["answer"] for answer in answers} == dict.fromkeys(ids, "cancelled")


def test_what_only_a_job_has_cannot_be_set(scene: Scene, perdure: Runner) -> None:
    job_id = schedule(scene, is_recurring=True)
    result = perdure("jobs", "set", job_id, "--priority", "5")
    assert result.exit_code == 4
    assert "was made with a schedule" in result.stderr


def test_explain_knows_it(scene: Scene, perdure: Runner) -> None:
    job_id = schedule(scene, is_recurring=True)
    assert perdure("explain", job_id).exit_code == 0
