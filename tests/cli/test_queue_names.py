"""Names of queues that nobody knows: commands warn, suggest what may be meant, and do what was asked for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner
from tests.cli.test_app import myapp

__all__ = ["myapp"]


def test_pausing_an_unknown_queue_warns_and_pauses_it(scene: Scene, perdure: Runner) -> None:
    scene.enqueue(queue="mail")
    result = perdure("queues", "pause", "mial")
    assert result.exit_code == 0
    assert "warning: no job, pause, setting or worker names the queue 'mial' here (did you mean 'mail'?)" in (
        result.stderr
    )
    assert "'perdure queues resume mial' takes that back" in result.stderr
    paused = {queue["name"]: queue["is_paused"] for queue in perdure.json("queues", "ls")["queues"]}
    assert paused == {"mail": False, "mial": True}
    # It is known now: by its pause.
    assert perdure("queues", "resume", "mial").stderr == ""


@pytest.mark.parametrize(
    "command", [["resume", "mial"], ["set", "mial", "--concurrency", "3"], ["show", "mial"], ["pause", "mial"]]
)
def test_every_command_about_one_queue_warns_of_an_unknown_one(
    scene: Scene, perdure: Runner, command: list[str]
) -> None:
    scene.enqueue(queue="mail")
    result = perdure("queues", *command)
    assert (result.exit_code, "(did you mean 'mail'?)" in result.stderr) == (0, True)


def test_json_stays_json_beside_the_warning(scene: Scene, perdure: Runner) -> None:
    result = perdure("queues", "pause", "brand-new", "--json")
    assert json.loads(result.stdout)["is_paused"] is True
    assert "did you mean" not in result.stderr
    assert "warning:" in result.stderr


@pytest.mark.parametrize("name", ["mail", "default"])
def test_known_queues_are_nothing_to_mention(scene: Scene, perdure: Runner, name: str) -> None:
    scene.enqueue(queue="mail")
    for command in (["pause", name], ["resume", name], ["set", name, "--concurrency", "3"]):
        assert perdure("queues", *command).stderr == ""


@pytest.fixture
def worker(perdure: Runner, myapp: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker of an app with one task in `mail`, which serves another queue."""
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", "worker", "cli_myapp:app", "--queues", "mial", "--lease", "60s"],
        env={**os.environ, "PERDURE_URL": perdure.url},
        cwd=perdure.directory,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()


def test_a_worker_that_knows_no_task_for_its_queues_says_so_and_the_doctor_reports_it(
    worker: subprocess.Popen[str], perdure: Runner
) -> None:
    while not perdure.json("workers", "ls")["workers"]:
        assert worker.poll() is None
    result = perdure("doctor", "--json", "--app", "cli_myapp:app")
    assert result.exit_code == 1
    (problem,) = [finding["text"] for finding in json.loads(result.stdout)["findings"] if finding["level"] == "problem"]
    assert "serves mial, and none of the app's tasks is in there. The tasks by queue are: mail: send" in problem
    worker.send_signal(signal.SIGTERM)
    assert worker.stderr is not None
    with worker.stderr:
        log = worker.stderr.read()
    assert worker.wait(60) == 0
    assert "WARNING This worker serves mial, and none of the app's tasks is in there" in log
    assert "(did you mean 'mail'?)" in log


def findings(perdure: Runner, *args: str) -> dict[str, str]:
    result = perdure("doctor", "--json", *args)
    found = json.loads(result.stdout)["findings"]
    return {finding["level"]: finding["text"] for finding in found if finding["check"] == "tasks"}


def test_the_doctor_compares_tasks_with_workers(scene: Scene, perdure: Runner, myapp: Path) -> None:
    app = ["--app", "cli_myapp:app"]
    assert "1 task" in findings(perdure, *app)["ok"]
    assert findings(perdure) == {}
    (myapp.parent / "cli_empty.py").write_text("from perdure import App\napp = App()\n")
    assert "the app has no task" in findings(perdure, "--app", "cli_empty:app")["problem"]


def test_the_doctor_counts_jobs_of_tasks_that_no_worker_knew(perdure: Runner, myapp: Path) -> None:
    job_id = perdure("enqueue", "nobody_knows_me", "--queue", "mail").stdout.strip()
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", "worker", "cli_myapp:app"],
        env={**os.environ, "PERDURE_URL": perdure.url},
        cwd=perdure.directory,
        stderr=subprocess.DEVNULL,
    )
    try:
        while perdure.json("jobs", "show", job_id)["reason"] != "parked":
            assert process.poll() is None
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert "1 job of tasks that no worker knew" in findings(perdure)["problem"]
