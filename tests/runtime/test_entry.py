"""The entry of a program: child processes run it before they import a task's module, however the program started."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.crew import Crew, until

from perdure import Job

SETTINGS = 'SECRET_KEY = "x"\nINSTALLED_APPS = ["shop"]\n'
MODELS = "from django.db import models\n\n\nclass Order(models.Model):\n    class Meta:\n        app_label = 'shop'\n"
TASKS = """
import os, signal, time
from perdure import App
from shop.models import Order

app = App(retry="fixed(10ms, max_attempts=4)")

@app.task(process=True)
def in_child() -> str:
    return f"{Order._meta.label} {os.getpid() != WORKER}"

@app.task
def in_worker(path: str) -> str:
    # The first attempt waits for the test to kill its worker.
    if not os.path.exists(path):
        open(path, "w").close()
        time.sleep(600)
    return f"{Order._meta.label} {os.getpid() != WORKER}"

WORKER = int(os.environ.get("TEST_WORKER", "0"))
"""

SET_UP = 'import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")\nimport django\ndjango.setup()\n'
"""What a Django program does before it imports its tasks."""

NOTE = 'import os\nos.environ.setdefault("TEST_WORKER", str(os.getpid()))\n'
"""Tells children the process id of the worker, which the first process to run this is."""

ENTRY = f"{NOTE}{SET_UP}from shop.tasks import app\n"
RUN = 'app.run_worker(lease=__import__("datetime").timedelta(seconds=2))\n'
ASGI = """
import asyncio, contextlib, uvicorn
from perdure_entry import app

async def serve(scope, receive, send):
    worker = app.make_worker()
    running = asyncio.create_task(worker.run())
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    worker.stop()
    await running
    await send({"type": "lifespan.shutdown.complete"})
"""
COMMAND = """
from django.core.management.base import BaseCommand

class Command(BaseCommand):
    def handle(self, *args, **options):
        from shop.tasks import app
        app.run_worker()
"""
MANAGE = f"""{NOTE}
import sys
if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
"""

PROGRAMS: dict[str, tuple[dict[str, str], list[str]]] = {
    "command line": ({"perdure_entry.py": ENTRY}, ["-m", "perdure", "worker", "perdure_entry:app"]),
    "several processes": (
        {"perdure_entry.py": ENTRY},
        ["-m", "perdure", "worker", "perdure_entry:app", "--processes", "2"],
    ),
    "up": ({"perdure_entry.py": ENTRY}, ["-m", "perdure", "up", "perdure_entry:app", "--port", "0"]),
    "script": ({"run.py": ENTRY + RUN}, ["run.py"]),
    "guarded script": ({"run.py": f'{ENTRY}if __name__ == "__main__":\n    {RUN}'}, ["run.py"]),
    "package": ({"pkg/__init__.py": "", "pkg/__main__.py": ENTRY + "from . import __name__\n" + RUN}, ["-m", "pkg"]),
    "module": ({"start.py": ENTRY + RUN}, ["-m", "start"]),
    "ASGI": (
        {"perdure_entry.py": ENTRY, "web.py": ASGI},
        ["-m", "uvicorn", "web:serve", "--port", "0", "--lifespan", "on"],
    ),
    "management command": (
        {
            "manage.py": MANAGE,
            "shop/management/__init__.py": "",
            "shop/management/commands/__init__.py": "",
            "shop/management/commands/work.py": COMMAND,
        },
        ["manage.py", "work"],
    ),
}


@pytest.fixture
def project(crew: Crew) -> Iterator[Crew]:
    """A Django project in the working directory of the processes."""
    write(crew.directory, {"site_settings.py": SETTINGS, "shop/__init__.py": "", "shop/models.py": MODELS})
    write(crew.directory, {"shop/tasks.py": TASKS})
    return crew


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def ended(crew: Crew, job_id: str) -> Job:
    until(lambda: crew.state(job_id) in ("succeeded", "dead"), "the job ends")
    return crew.job(job_id)


def result(job: Job) -> object:
    return None if job.result is None else json.loads(job.result)


ALIKE = {"guarded script", "module", "package"}
"""Programs that differ little from another one here; they are tried in the long tests."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_child_runs_the_entry_before_it_imports_the_task(project: Crew, name: str) -> None:
    if name in ALIKE and os.environ.get("PERDURE_CHAOS") != "long":
        pytest.skip("tried in the long tests")
    files, command = PROGRAMS[name]
    write(project.directory, files)
    process = project.start(*command, poll="200ms", grace="5s")
    job = ended(project, project.enqueue_named("in_child"))
    assert (result(job), job.failures) == ("shop.Order True", 0)
    # uvicorn ends of the signal itself, once it has shut down.
    assert project.stop(process) == [-signal.SIGTERM if name == "ASGI" else 0]


@pytest.mark.crash
def test_a_recovered_job_runs_in_a_child_that_has_run_the_entry(project: Crew) -> None:
    write(project.directory, {"perdure_entry.py": ENTRY})
    command = ["-m", "perdure", "worker", "perdure_entry:app", "--lease", "1s"]
    mark = project.directory / "begun"
    job_id = project.enqueue_named("in_worker", str(mark))
    victim = project.start(*command, poll="200ms")
    until(mark.exists, "the first attempt runs")
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    process = project.start(*command, poll="200ms")
    job = ended(project, job_id)
    # Only the loss itself was counted: the next attempt ran in a child and succeeded.
    assert (result(job), job.failures, job.attempt) == ("shop.Order True", 1, 2)
    assert project.stop(process) == [0]


def test_an_entry_that_fails_in_the_child_costs_the_attempt_and_shows_the_users_own_trace(crew: Crew) -> None:
    broken = "import os\nif 'TEST_WORKER' in os.environ:\n    def prepare():\n        raise OSError('no config here')\n"
    tasks = "from perdure import App\napp = App(retry='one-shot')\n@app.task(process=True)\ndef f(): return 'ran'\n"
    write(crew.directory, {"entry.py": f"{broken}    prepare()\n{NOTE}from jobs import app\n", "jobs.py": tasks})
    process = crew.start("-m", "perdure", "worker", "entry:app", poll="200ms")
    job_ids = [crew.enqueue_named("f") for _ in range(2)]
    for job_id in job_ids:
        job = ended(crew, job_id)
        assert (job.state, job.failures) == ("dead", 1)
        (attempt,) = crew.client.history(job_id)
        assert attempt.error is not None
        assert attempt.error.message == (
            "the child process could not import the entry module entry: OSError: no config here"
        )
        assert "entry.py" in attempt.error.trace
        assert "in prepare" in attempt.error.trace
        assert "importlib" not in attempt.error.trace
        assert "perdure" not in attempt.error.trace.replace(str(crew.directory), "")
    assert crew.stop(process) == [0]


@pytest.mark.parametrize("guard", ["", 'if __name__ == "__main__":\n    '])
def test_a_script_with_its_tasks_and_jobs_in_it_enqueues_once(crew: Crew, guard: str) -> None:
    """The child runs the script up to where it starts to work; it makes no job of its own and starts no worker."""
    script = (
        "from perdure import App\napp = App()\n@app.task(process=True)\ndef f(): return __name__\n"
        f"{guard}f.enqueue()\n{guard}app.run_worker()\n"
    )
    write(crew.directory, {"run.py": script})
    process = crew.start("run.py", poll="200ms")
    until(crew.is_drained, "the job is done")
    until(lambda: crew.jobs(), "there is a job")
    until(crew.is_drained, "the job is done")
    (job,) = crew.jobs()
    assert (job.state, result(job), len(crew.registered())) == ("succeeded", "__perdure_child__", 1)
    assert crew.stop(process) == [0]


def test_a_main_file_that_cannot_be_run_again_says_what_to_do(crew: Crew) -> None:
    script = (
        "import os, sys\nfrom jobs import app\nif 'TEST_WORKER' in os.environ:\n    sys.exit(3)\n"
        f"{NOTE}app.run_worker()\n"
    )
    tasks = "from perdure import App\napp = App(retry='one-shot')\n@app.task(process=True)\ndef f(): return 'ran'\n"
    write(crew.directory, {"run.py": script, "jobs.py": tasks})
    process = crew.start("run.py", poll="200ms")
    job_id = crew.enqueue_named("f")
    assert ended(crew, job_id).state == "dead"
    (attempt,) = crew.client.history(job_id)
    assert attempt.error is not None
    assert "SystemExit: 3" in attempt.error.message
    assert 'if __name__ == "__main__"' in attempt.error.message
    assert crew.stop(process) == [0]


def test_a_child_can_be_told_nothing_of_a_shell(crew: Crew) -> None:
    """`python -c` has no main file: the tasks of modules run all the same."""
    tasks = "from perdure import App\napp = App()\n@app.task(process=True)\ndef f(): return 'ran'\n"
    write(crew.directory, {"jobs.py": tasks})
    process = crew.start("-c", "from jobs import app; app.run_worker()", poll="200ms")
    assert result(ended(crew, crew.enqueue_named("f"))) == "ran"
    assert crew.stop(process) == [0]


def test_a_module_that_runs_a_worker_when_it_is_imported_starts_none_in_a_child(crew: Crew) -> None:
    tasks = "from perdure import App\napp = App()\n@app.task(process=True)\ndef f(): return 'ran'\n"
    web = (
        "import asyncio, threading\nfrom jobs import app\nasync def work():\n    await app.make_worker().run()\n"
        "threading.Thread(target=lambda: asyncio.run(work()), daemon=True).start()\n"
    )
    run = 'import signal\nimport web\nif __name__ == "__main__":\n    signal.pause()\n'
    write(crew.directory, {"run.py": run, "jobs.py": tasks, "web.py": web})
    process = crew.start("run.py", poll="200ms")
    assert [result(ended(crew, crew.enqueue_named("f"))) for _ in range(2)] == ["ran", "ran"]
    assert list(crew.registered()) == [process.pid]
    assert "Traceback" not in crew.output()
    crew.stop(process)
