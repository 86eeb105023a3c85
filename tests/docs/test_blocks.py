"""Every python block of the docs runs as it stands, in an empty directory, without a warning."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, python_blocks

from perdure import App
from perdure.model.job import JobId

BLOCKS = {f"{path.relative_to(ROOT)}:{line}": text for path in PAGES for line, text in python_blocks(path)}
RUNNING = {name: text for name, text in BLOCKS.items() if not text.startswith("# not run")}
PATIENCE = 60


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PERDURE_")]:
        monkeypatch.delenv(name)
    return tmp_path


def test_there_are_blocks_and_few_that_are_not_run() -> None:
    assert len(RUNNING) >= 10
    assert len(BLOCKS) - len(RUNNING) <= 1


@pytest.mark.parametrize("name", RUNNING)
def test_the_block_runs(name: str, empty: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    try:
        exec(compile(RUNNING[name], name, "exec"), names)
    finally:
        for value in names.values():
            if isinstance(value, App):
                value.close()


def test_the_first_app_of_the_readme_works_as_it_is_told(empty: Path) -> None:
    text = next(text for name, text in RUNNING.items() if name.startswith("README"))
    (empty / "myapp.py").write_text(text, encoding="utf-8")
    enqueued = subprocess.run([sys.executable, "myapp.py"], capture_output=True, text=True, check=True)
    job_id = JobId(enqueued.stdout.strip())
    app = App()
    worker = subprocess.Popen([sys.executable, "-m", "perdure", "worker", "myapp:app"], stderr=subprocess.PIPE)
    try:
        wait_until_ended(app, job_id)
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=PATIENCE)
        job = app.client().get(job_id)
    finally:
        worker.kill()
        worker.communicate()
        app.close()
    assert (job.state, job.attempt, job.result) == ("succeeded", 2, b'"sent to a@b.c: hi"')
    assert worker.returncode == 0


def wait_until_ended(app: App, job_id: JobId) -> None:
    deadline = time.monotonic() + PATIENCE
    while not app.client().get(job_id).is_final:
        assert time.monotonic() < deadline, "the job of the README did not end"
        time.sleep(0.05)
