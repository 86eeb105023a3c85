"""Every example runs, from a directory of its own, and does what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

EXPECTED = {
    "mail.py": ["enqueued", "run them with: perdure worker mail:app"],
    "webhooks.py": [
        "answered 503",
        "answered 503",
        "attempt 3 of",
        "the job succeeded after 3 attempts",
    ],
    "schedules.py": [
        "2030-01-01 02:30 succeeded at attempt 2",
        "2030-01-02 02:30 succeeded at attempt 2",
        "2030-01-03 02:30 succeeded at attempt 2",
        "432 beats",
    ],
    "transactional_enqueue.py": [
        "before the commit: 0 jobs",
        "after the commit: 1 job, ready",
        "after 'the payment failed': 1 order, 1 job",
    ],
    "testing_your_tasks.py": [
        "ok  a charge is tried again when the bank was down",
        "ok  a declined card is not tried again",
        "ok  three failures are enough and the history has them all",
        "ok  the function itself can be called without any queue",
    ],
}
"""What each example prints, a part of each line."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    return {**kept, "PYTHONPATH": str(EXAMPLES), "PYTHONWARNINGS": "error", "PYTHONDONTWRITEBYTECODE": "1"}


def test_every_example_is_tested_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_example_runs_and_prints_what_it_should(name: str, tmp_path: Path, environment: dict[str, str]) -> None:
    done = run(tmp_path, environment, str(EXAMPLES / name))
    lines = done.stdout.splitlines()
    assert len(lines) == len(EXPECTED[name])
    for line, part in zip(lines, EXPECTED[name], strict=True):
        assert part in line


def test_the_testing_example_is_a_set_of_pytest_tests(tmp_path: Path, environment: dict[str, str]) -> None:
    done = run(
        tmp_path, environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "testing_your_tasks.py")
    )
    assert "4 passed" in done.stdout


def test_the_mails_are_sent_by_a_worker_after_their_retries(tmp_path: Path, environment: dict[str, str]) -> None:
    run(tmp_path, environment, str(EXAMPLES / "mail.py"))
    worker = subprocess.Popen(
        [sys.executable, "-m", "perdure", "worker", "mail:app", "--queues", "mail"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    sent = [worker.stdout.readline() for _ in range(2)]
    worker.send_signal(signal.SIGTERM)
    _, log = worker.communicate(timeout=300)
    assert worker.returncode == 0, log
    assert {line.split(",")[0] for line in sent} == {
        "sent to ada@example.org at attempt 3 of 5",
        "sent to bob@example.org at attempt 3 of 5",
    }
    dead = run(tmp_path, environment, "-m", "perdure", "dlq", "ls")
    assert "unrecoverable" in dead.stdout
    assert "is not an address" in dead.stdout


def run(folder: Path, environment: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
