"""The frame of the command line: help without heavy imports, exit codes, errors in words, pipes, typos."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure.cli import faults
from perdure.cli.main import COMMANDS, root
from perdure.errors import (
    EngineBusy,
    EngineUnreachable,
    JobNotFound,
    PerdureError,
    SchemaTooNew,
    UsageError,
    WrongState,
)

NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"
HEAVY = {"rich", "sqlite3", "psycopg", "redis", "starlette", "uvicorn"}


def imported_by(*args: str) -> set[str]:
    script = (
        "import sys\n"
        "from perdure.cli.main import root\n"
        "try: root.main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print('MODULES', *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *args], capture_output=True, text=True, check=True, timeout=300
    )
    return set(done.stdout.rpartition("MODULES ")[2].split())


@pytest.mark.parametrize("args", [(), *((name,) for name in COMMANDS), ("jobs", "ls"), ("dlq", "replay")])
def test_help_imports_nothing_heavy(args: tuple[str, ...]) -> None:
    modules = imported_by(*args, "--help")
    assert not modules & HEAVY
    assert not {name for name in modules if name == "perdure.app" or name.startswith("perdure.engines")}


def test_the_help_of_the_root_imports_no_command() -> None:
    modules = {name for name in imported_by("--help") if name.startswith("perdure.")}
    command_line = {"perdure.cli", "perdure.cli.main", "perdure.cli.faults", "perdure.cli.lazy"}
    assert modules == {*command_line, "perdure.text", "perdure.text.credentials", "perdure.errors"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_root_help_is_true(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.name == name
    assert command.help


@pytest.mark.parametrize("args", [[], ["jobs"], ["dlq"], ["policy"]])
def test_a_group_without_a_command_shows_its_help(perdure: Runner, args: list[str]) -> None:
    result = perdure(*args)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == perdure(*args, "--help").stdout


def test_the_version_is_printed(perdure: Runner) -> None:
    assert re.fullmatch(r"perdure \d+\.\d+\.\d+\n", perdure("--version").stdout)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(["job"], "perdure jobs"), (["dql"], "perdure dlq"), (["jobs", "sho"], "perdure jobs show")],
)
def test_a_typo_gets_a_suggestion(perdure: Runner, typed: list[str], meant: str) -> None:
    result = perdure(*typed)
    assert result.exit_code == faults.USAGE
    assert f"Did you mean '{meant}'?" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (click.UsageError("x"), 2),
        (JobNotFound("x"), 3),
        (WrongState("x"), 4),
        (EngineUnreachable("x"), 5),
        (EngineBusy("x"), 5),
        (SchemaTooNew("x"), 5),
        (PerdureError("x"), 1),
        (OSError("x"), 1),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert faults.exit_code(error) == code


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["jobs", "show", NOBODY], 3, "No job has the id"),
        (["jobs", "show", "abc"], 3, "not a job id"),
        (["jobs", "ls", "--state", "asleep"], 2, "asleep"),
        (["jobs", "ls", "--colour"], 2, "--colour"),
        (["jobs", "ls", "--before", "soonish"], 2, "no moment"),
        (["jobs", "ls", "--limit", "0"], 2, "limit"),
        (["jobs", "ls", "--cursor", "zzz"], 3, "not a job id"),
        (["jobs", "cancel"], 2, "Which jobs?"),
        (["dlq", "replay"], 2, "Which dead jobs?"),
        (["dlq", "replay", "--all", "--task", "x"], 2, "together"),
        (["dlq", "replay", "--all", "--rate", "fast"], 2, "no rate"),
        (["jobs", "ls", "--url", "nonsense"], 2, "scheme"),
        (["jobs", "ls", "--url", "mysql://x"], 2, "mysql"),
        (["jobs", "ls", "--url", "sqlite:////no/such/dir/x.db"], 5, "does not exist"),
        (["policy", "show", "exponentiall"], 2, "exponential"),
        (["policy", "simulate", "standard", "--fail-for", "soon"], 2, "--fail-for"),
        (["enqueue", "t", "--delay", "never"], 2, "--delay"),
        (["enqueue", "t", "--at", "tomorrow"], 2, "--at"),
        (["enqueue", "t", "--args-json", "{oops"], 2, "not JSON"),
        (["enqueue", "t", "--max-attempts", "few"], 2, "--max-attempts"),
        (["enqueue", "t", "word"], 2, "key=value"),
        (["enqueue", "t", "--retry", "bogus("], 2, "policy"),
        (["enqueue", "t", "a=1", "--app", "no_such_module:app"], 2, "no_such_module"),
        (["worker", "no_such_module:app"], 2, "no_such_module"),
        (["worker", "jobs.py"], 2, "module:attribute"),
        (["explain", "send"], 2, "--app"),
    ],
)
def test_what_a_user_can_cause_is_told_in_words_with_its_code(
    perdure: Runner, args: list[str], code: int, words: str
) -> None:
    result = perdure(*args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    assert "Perdure itself failed" not in result.stderr


def test_with_json_errors_are_json_on_stderr(perdure: Runner) -> None:
    result = perdure("jobs", "show", NOBODY, "--json")
    error = json.loads(result.stderr)["error"]
    assert (error["type"], error["exit_code"], result.exit_code) == ("JobNotFound", 3, 3)
    assert error["message"]
    assert error["hint"]


def test_usage_errors_are_json_too(perdure: Runner) -> None:
    result = perdure("jobs", "show", "--json")
    assert json.loads(result.stderr)["error"]["exit_code"] == 2


READS = [
    ["jobs", "ls"],
    ["jobs", "show", NOBODY],
    ["jobs", "cancel", NOBODY],
    ["jobs", "retry", NOBODY],
    ["dlq", "ls"],
    ["dlq", "groups"],
    ["dlq", "show", NOBODY],
    ["dlq", "replay", "--all", "--yes"],
    ["dlq", "discard", "--all", "--yes"],
    ["dlq", "export"],
    ["queues", "ls"],
    ["queues", "pause", "mail"],
    ["queues", "resume", "mail"],
    ["workers", "ls"],
    ["stats"],
    ["doctor"],
    ["db", "status"],
    ["explain", NOBODY],
]


@pytest.mark.parametrize("args", READS, ids=" ".join)
def test_looking_at_a_store_that_does_not_exist_makes_no_file(nowhere: Runner, args: list[str]) -> None:
    result = nowhere(*args)
    assert result.exit_code == faults.UNREACHABLE
    assert "PERDURE_URL" in result.stderr
    assert list(nowhere.directory.iterdir()) == []


def test_a_file_that_is_no_store_is_told_plainly(tmp_path: Path, nowhere: Runner) -> None:
    (tmp_path / "missing.db").write_bytes(b"this is a letter, not a database" * 40)
    result = nowhere("jobs", "ls")
    assert result.exit_code == faults.UNREACHABLE
    assert "Perdure itself failed" not in result.stderr


def set_version(path: Path, version: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM perdure_schema")
    connection.execute("INSERT INTO perdure_schema (version, applied_at) VALUES (?, 0)", (version,))
    connection.commit()
    connection.close()


def test_a_store_of_a_newer_perdure_is_refused(scene: Scene, perdure: Runner, tmp_path: Path) -> None:
    scene.close()
    set_version(tmp_path / "jobs.db", 9999)
    result = perdure("jobs", "ls")
    assert result.exit_code == faults.UNREACHABLE
    assert "9999" in result.stderr
    assert perdure("doctor").exit_code == faults.FAILED
    assert perdure("db", "status").exit_code == faults.FAILED


def test_a_store_of_an_older_perdure_is_seen_and_migrated_only_on_request(
    scene: Scene, perdure: Runner, tmp_path: Path
) -> None:
    scene.close()
    (tmp_path / "jobs.db").write_bytes(b"")
    status = perdure("db", "status", "--json")
    assert status.exit_code == faults.FAILED
    assert not json.loads(status.stdout)["is_current"]
    doctor = perdure("doctor", "--json")
    assert doctor.exit_code == faults.FAILED
    assert "perdure db migrate" in doctor.stdout
    assert perdure("db", "migrate").exit_code == faults.OK
    assert perdure("db", "status").exit_code == faults.OK


def test_a_fault_in_perdure_is_named_as_such_without_a_traceback(
    perdure: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("perdure.cli.stats.stats_document", broken)
    result = perdure("stats", "--json")
    assert result.exit_code == faults.FAILED
    assert "ZeroDivisionError" in json.loads(result.stderr)["error"]["message"]


def test_a_reader_that_has_seen_enough_is_no_error(scene: Scene, perdure: Runner) -> None:
    for _ in range(300):
        scene.enqueue()
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", "jobs", "ls", "--limit", "1000", "--json", "--url", scene.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == faults.OK


def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)\n")
    done = subprocess.run(
        [sys.executable, "-m", "perdure", "explain", "x", "--app", "slow:app"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode == faults.INTERRUPTED
    assert "Traceback" not in done.stderr


def test_an_output_that_knows_few_characters_is_no_error(perdure: Runner) -> None:
    done = perdure.process("policy", "show", "standard", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "=" in done.stdout
    assert "█" not in done.stdout


def test_the_console_script_and_the_module_are_the_same(perdure: Runner) -> None:
    script = Path(sys.executable).with_name("perdure")
    by_script = subprocess.run([script, "policy", "ls"], capture_output=True, text=True, timeout=300, check=True)
    assert by_script.stdout == perdure.process("policy", "ls").stdout


def test_exit_codes_reach_the_shell(perdure: Runner) -> None:
    assert perdure.process("stats").returncode == 0
    assert perdure.process("jobs", "show", NOBODY).returncode == 3
    assert perdure.process("nonsense").returncode == 2
    assert perdure.process("stats", env={"PERDURE_URL": f"sqlite:///{os.devnull}/x.db"}).returncode == 5
    assert perdure.process("stats", env={"PERDURE_LEASE": "soon"}).returncode == 2
