"""Commands that need the user's app: enqueue, explain, worker; and what they say when it cannot be loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Runner

APP = """
from perdure.app import App

app = App()


@app.task(queue="mail", retry="exponential(2s, cap=10m, max_attempts=12)", timeout="30s")
def send(to: str, body: str = "") -> str:
    return "sent"
"""


@pytest.fixture
def myapp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "cli_myapp.py"
    path.write_text(APP)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield path
    sys.path[:] = before
    for name in [name for name in sys.modules if name.startswith("cli_")]:
        del sys.modules[name]


def job(perdure: Runner, job_id: str) -> dict[str, object]:
    shown: dict[str, object] = perdure.json("jobs", "show", job_id.strip())
    return shown


def test_enqueue_makes_the_file_and_a_job_and_prints_its_id(nowhere: Runner) -> None:
    result = nowhere("enqueue", "send", "to=a@b.c", "count=3", 'tags=["x"]', "flag=true", "text=NaN", "empty=")
    assert result.exit_code == 0
    kwargs = {"to": "a@b.c", "count": 3, "tags": ["x"], "flag": True, "text": "NaN", "empty": ""}
    assert job(nowhere, result.stdout)["args"] == {"kwargs": kwargs}
    assert "not checked" in result.stderr


def test_enqueue_takes_every_option(perdure: Runner) -> None:
    made = perdure.json(
        *("enqueue", "send", "--args-json", "[1, 2]", "n=3", "--queue", "mail", "--delay", "1h", "--priority", "5"),
        *(
            "--unique",
            "k",
            "--max-retries",
            "2",
            "--retry",
            "fixed(1s)",
            "--delivery",
            "at_most_once",
            "--timeout",
            "9s",
        ),
    )
    shown = job(perdure, made["id"])
    assert shown["args"] == {"args": [1, 2], "kwargs": {"n": 3}}
    assert (shown["queue"], shown["state"], shown["priority"], shown["unique"]) == ("mail", "waiting", 5, "k")
    assert (shown["max_attempts"], shown["retry"], shown["delivery"]) == (3, "fixed(1s)", "at_most_once")
    assert shown["timeout"] == 9


def test_enqueue_at_a_time_is_utc_without_offset(perdure: Runner) -> None:
    made = perdure("enqueue", "send", "--at", "2040-01-01T12:00")
    assert job(perdure, made.stdout)["run_at"] == "2040-01-01T12:00:00Z"
    made = perdure("enqueue", "send", "--at", "2040-01-01T12:00+02:00")
    assert job(perdure, made.stdout)["run_at"] == "2040-01-01T10:00:00Z"


def test_enqueue_reads_arguments_from_stdin(perdure: Runner) -> None:
    made = perdure("enqueue", "send", "--args-json", "-", stdin='{"to": "x"}')
    assert job(perdure, made.stdout)["args"] == {"kwargs": {"to": "x"}}


@pytest.mark.parametrize(
    "args",
    [
        ["a=1", "a=2"],
        ["--args-json", "3"],
        ["--args-json", "[NaN]"],
        ["--args-json", "[" * 100_000],
        ["--priority", "101"],
        ["--delay", "1s", "--at", "2040-01-01"],
        ["--max-attempts", "3", "--max-retries", "2"],
        ["--max-attempts", "0"],
        ["--delivery", "twice"],
    ],
)
def test_enqueue_refuses_what_makes_no_sense(perdure: Runner, args: list[str]) -> None:
    result = perdure("enqueue", "send", *args)
    assert result.exit_code == 2
    assert "Perdure itself failed" not in result.stderr
    assert perdure.json("jobs", "ls")["jobs"] == []


def test_enqueue_with_an_app_knows_the_task(perdure: Runner, myapp: Path) -> None:
    made = perdure("enqueue", "send", "to=x", "--app", "cli_myapp:app")
    assert made.stderr == ""
    assert job(perdure, made.stdout)["queue"] == "mail"
    wrong = perdure("enqueue", "sned", "to=x", "--app", "cli_myapp:app")
    assert (wrong.exit_code, "Did you mean 'send'?" in wrong.stderr) == (2, True)
    assert perdure("enqueue", "send", "wrong=x", "--app", "cli_myapp:app").exit_code == 2


def test_explain_names_the_origin_of_each_value(perdure: Runner, myapp: Path) -> None:
    shown = perdure.json("explain", "send", "--app", "cli_myapp")
    origins = {line["name"]: (line["value"], line["origin"]) for line in shown["values"]}
    assert origins["max_attempts"] == ("12", "task")
    assert origins["timeout"] == ("30s", "task")
    assert shown["limit"] == 12
    assert [wait["ceiling"] for wait in shown["waits"][:3]] == [2, 4, 8]
    assert "12 attempts (11 retries)" in perdure("explain", "send", "--app", "cli_myapp").stdout


def test_explain_of_a_job_lets_the_job_win(perdure: Runner, myapp: Path) -> None:
    made = perdure("enqueue", "send", "to=x", "--max-attempts", "2", "--app", "cli_myapp:app")
    job_id = made.stdout.strip()
    shown = perdure.json("explain", job_id, "--app", "cli_myapp:app")
    assert {"name": "max_attempts", "value": "2", "origin": "job"} in shown["values"]
    without = perdure("explain", job_id)
    assert without.exit_code == 0
    assert "not known" in without.stderr


def test_explain_of_an_unknown_task_names_those_there_are(perdure: Runner, myapp: Path) -> None:
    result = perdure("explain", "snd", "--app", "cli_myapp:app")
    assert result.exit_code == 2
    assert "send" in result.stderr


def test_the_app_may_come_from_the_environment(perdure: Runner, myapp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_APP", "cli_myapp:app")
    assert perdure("explain", "send").exit_code == 0


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("cli_a:ap", "from perdure.app import App\napp = App()\n", "It has: cli_a:app"),
        ("cli_b:app", "app = 3\n", "is a int, not an App"),
        ("cli_c", "x = 1\n", "holds no App"),
        ("cli_d", "from perdure.app import App\na = App()\nb = App()\n", "holds several apps"),
        ("cli_e:app", "x = 1\n\nraise RuntimeError('boom')\n", "cli_e.py, line 3: RuntimeError: boom"),
        ("cli_f:app", "import no_such_thing\n", "cli_f.py, line 1: ModuleNotFoundError"),
        ("cli_g:app", "x = (\n", "cli_g.py, line 1: SyntaxError"),
        ("cli_h:app", "import sys\nsys.exit('no')\n", "line 2: SystemExit: no"),
        ("cli_i.sub:app", "x = 1\n", "There is no module 'cli_i.sub'"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_told_plainly(
    perdure: Runner, myapp: Path, tmp_path: Path, name: str, source: str, words: str
) -> None:
    (tmp_path / f"{name.partition(':')[0].partition('.')[0]}.py").write_text(source)
    for command in (["worker", name], ["explain", "send", "--app", name]):
        result = perdure(*command)
        assert result.exit_code == 2
        assert words in result.stderr


def test_an_app_with_a_store_of_its_own_is_not_silently_moved(perdure: Runner, myapp: Path, tmp_path: Path) -> None:
    (tmp_path / "cli_own.py").write_text(f"from perdure.app import App\napp = App('sqlite:///{tmp_path}/own.db')\n")
    result = perdure("enqueue", "x", "--app", "cli_own:app", "--url", f"sqlite:///{tmp_path}/other.db")
    assert result.exit_code == 2
    assert "--url does nothing" in result.stderr


def start_worker(perdure: Runner, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "perdure", "worker", "cli_myapp:app", "--queues", "mail", *args],
        env={**os.environ, "PERDURE_URL": perdure.url},
        cwd=perdure.directory,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("count", "args"), [(1, []), (2, ["--processes", "2", "--concurrency", "3", "--grace", "5s", "--lease", "5s"])]
)
def test_a_worker_runs_jobs_until_it_is_told_to_stop(perdure: Runner, myapp: Path, count: int, args: list[str]) -> None:
    job_id = perdure("enqueue", "send", "to=x", "--app", "cli_myapp:app").stdout.strip()
    process = start_worker(perdure, *args)
    assert process.stderr is not None
    while job(perdure, job_id)["state"] != "succeeded" or len(perdure.json("workers", "ls")["workers"]) < count:
        assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGTERM)
    with process.stderr:
        log = process.stderr.read()
    assert process.wait(60) == 0
    assert "serves mail" in log
    assert perdure.json("workers", "ls")["workers"] == []


def test_a_worker_without_its_module_ends_at_once(perdure: Runner) -> None:
    for args in ([], ["--processes", "2"]):
        done = perdure.process("worker", "cli_missing:app", *args)
        assert done.returncode == 2
        assert done.stderr.count("There is no module 'cli_missing'") == 1


def test_a_worker_refuses_queues_without_names(perdure: Runner, myapp: Path) -> None:
    result = perdure("worker", "cli_myapp:app", "--queues", " , ", "--json")
    assert result.exit_code == 2
    assert "--queues" in json.loads(result.stderr)["error"]["message"]


TRACES = {
    "cli_raises": ("def load():\n    raise RuntimeError('boom')\n\nload()\n", ["in load", "RuntimeError: boom"]),
    "cli_syntax": ("x = 1\ny = (\n", ["cli_syntax.py", "y = (", "SyntaxError"]),
    "cli_exits": ("import sys\n\nsys.exit('no config')\n", ["sys.exit('no config')", "SystemExit: no config"]),
    "cli_needs": ("import not_installed_here\n", ["import not_installed_here", "ModuleNotFoundError"]),
    "cli_circle": ("from cli_circle_b import x\ny = 1\n", ["partially initialized module", "cli_circle_b.py"]),
    "cli_base": ("raise GeneratorExit\n", ["GeneratorExit"]),
    "cli_wrong_use": (
        "from perdure import App\napp = App()\n\n@app.task(retry='nonsense')\ndef f(): ...\n",
        ["@app.task(retry='nonsense')", "BadPolicy"],
    ),
    "cli_chained": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise OSError('later') from e\n",
        ["ZeroDivisionError", "direct cause", "OSError: later"],
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_a_module_that_fails_shows_the_users_own_traceback(perdure: Runner, myapp: Path, tmp_path: Path, name: str):
    source, words = TRACES[name]
    (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "cli_circle_b.py").write_text("from cli_circle import y\n")
    own = str(Path(__import__("perdure").__file__).parent)
    for command in (
        ["worker", f"{name}:app"],
        ["up", f"{name}:app"],
        ["server", f"{name}:app"],
        ["enqueue", "f", "--app", f"{name}:app"],
        ["explain", "f", "--app", f"{name}:app"],
        ["queues", "show", "q", "--app", f"{name}:app"],
    ):
        result = perdure(*command)
        assert result.exit_code == 2, result.stderr
        for word in words:
            assert word in result.stderr
        assert f"error: The module '{name}' cannot be imported at " in result.stderr
        assert own not in result.stderr
        assert "importlib" not in result.stderr
    as_json = json.loads(perdure("worker", f"{name}:app", "--json").stderr)["error"]
    assert words[-1] in as_json["traceback"]
    assert as_json["exit_code"] == 2


def test_an_app_that_is_no_app_is_told_without_a_traceback(perdure: Runner, myapp: Path, tmp_path: Path) -> None:
    (tmp_path / "cli_other.py").write_text("app = object()\n\ndef __getattr__(name):\n    raise ValueError(name)\n")
    assert "Traceback" not in perdure("worker", "cli_other:app").stderr
    assert "is a object, not an App" in perdure("worker", "cli_other:app").stderr
    computed = perdure("worker", "cli_other:late")
    assert (computed.exit_code, "ValueError: late" in computed.stderr) == (2, True)


def test_several_processes_show_the_traceback_too(perdure: Runner, myapp: Path, tmp_path: Path) -> None:
    (tmp_path / "cli_raises.py").write_text(TRACES["cli_raises"][0])
    done = perdure.process("worker", "cli_raises:app", "--processes", "2")
    assert done.returncode == 2
    assert "RuntimeError: boom" in done.stderr
