"""perdure.toml as commands and workers see it: what it changes, and how what is wrong in it is told."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure import App, Retry
from perdure.cli import faults
from perdure.cli.main import root

APP = """
import asyncio, os
from perdure import App

app = App()
app.queue("mail", concurrency=8)

@app.task(queue="mail")
async def send() -> None:
    note("+")
    await asyncio.sleep(0.05)
    note("-")

def note(sign: str) -> None:
    with open("ledger", "a") as ledger:
        ledger.write(sign)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Writes the perdure.toml of the working directory, where a module with an app lies too."""
    monkeypatch.delenv("PERDURE_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cli_shop.py").write_text(APP)

    def make(text: str) -> Path:
        (tmp_path / "perdure.toml").write_text(text)
        return tmp_path

    before = list(sys.path)
    yield make
    sys.path[:] = before
    for name in [name for name in sys.modules if name.startswith("cli_")]:
        del sys.modules[name]


@pytest.mark.parametrize("limit", [1, 2])
def test_a_worker_keeps_to_the_limit_of_the_file(write: Callable[[str], Path], limit: int) -> None:
    folder = write(f"""
        url = "sqlite:///jobs.db"
        app = "cli_shop:app"
        concurrency = 8
        [queues.mail]
        concurrency = {limit}
    """)
    app = App()
    ids = [app.enqueue_named("send", [], {}, queue="mail") for _ in range(8)]
    worker = subprocess.Popen([sys.executable, "-m", "perdure", "worker"], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while app.client().count(state="succeeded") < len(ids):
            assert worker.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        worker.terminate()
        _, log = worker.communicate(timeout=300)
        app.close()
    assert worker.returncode == 0, log
    signs = (folder / "ledger").read_text()
    at_once = [signs[:end].count("+") - signs[:end].count("-") for end in range(len(signs) + 1)]
    assert (signs.count("+"), max(at_once)) == (len(ids), limit)


def test_the_origin_of_each_value_of_a_queue_is_shown(write: Callable[[str], Path], perdure: Runner) -> None:
    write('app = "cli_shop:app"\n[queues.mail]\nretry_share = 0.1\nstrict = true')
    perdure("queues", "set", "mail", "--no-strict")
    shown = perdure.json("queues", "show", "mail")
    assert {line["name"]: (line["value"], line["origin"]) for line in shown["values"]} == {
        "retry_share": ("0.1", "file"),
        "strict": ("no", "operator"),
        "max_retries_running": ("none", "default"),
        "concurrency": ("8", "code"),
        "retry": ("none: the app's", "default"),
    }


def test_a_queue_s_retry_policy_of_the_file_is_shown_and_explained(
    write: Callable[[str], Path], perdure: Runner, scene: Scene
) -> None:
    scene.enqueue(queue="mail")
    write('app = "cli_shop:app"\nretry = "conservative"\n[queues.mail]\nretry = "patient"')
    policy = Retry.preset("patient").text
    shown = perdure.json("queues", "show", "mail")
    assert {"name": "retry", "value": policy, "origin": "file"} in shown["values"]
    explained = perdure.json("explain", "send")
    assert {"name": "retry", "value": policy, "origin": "queue (perdure.toml)"} in explained["values"]
    [limit] = explained["limits"]
    assert (limit["name"], limit["max_attempts"], limit["origin"]) == (
        "policy of the queue",
        20,
        "queue (perdure.toml)",
    )


@pytest.mark.parametrize("command", [("doctor",), ("jobs", "ls"), ("worker",), ("explain", "send")])
def test_a_wrong_retry_policy_is_told_with_file_or_variable_by_every_command(
    write: Callable[[str], Path], perdure: Runner, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    write('app = "cli_shop:app"\n[queues.mail]\nretry = "patiant"')
    refused = perdure(*command)
    assert refused.exit_code == faults.USAGE
    assert "perdure.toml, [queues.mail]: retry is not a retry policy" in refused.stderr
    assert "Did you mean patient?" in refused.stderr
    write('app = "cli_shop:app"')
    monkeypatch.setenv("PERDURE_RETRY", "standard(max_atempts=3)")
    refused = perdure(*command)
    assert refused.exit_code == faults.USAGE
    assert "PERDURE_RETRY is not a retry policy" in refused.stderr
    assert "Did you mean max_attempts?" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_store_of_the_file_is_used_where_no_other_is_named(
    write: Callable[[str], Path], perdure: Runner, scene: Scene
) -> None:
    scene.enqueue()
    folder = write('url = "sqlite:///other.db"')
    made = CliRunner().invoke(root, ["enqueue", "send", "--queue", "mail"])
    assert made.exit_code == 0, made.output
    assert (folder / "other.db").exists()
    assert [queue["name"] for queue in perdure.json("queues", "ls")["queues"]] == ["default"]
    elsewhere = perdure.json("queues", "ls", "--url", "sqlite:///other.db")
    assert [queue["name"] for queue in elsewhere["queues"]] == ["mail"]


def test_an_app_on_the_command_line_wins_over_the_file(write: Callable[[str], Path], perdure: Runner) -> None:
    write('app = "missing:app"')
    assert perdure("explain", "send", "--app", "cli_shop:app").exit_code == 0
    refused = perdure("explain", "send")
    assert (refused.exit_code, "missing" in refused.stderr) == (faults.USAGE, True)


def test_the_doctor_says_which_settings_come_from_where(
    write: Callable[[str], Path], perdure: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found_by_doctor(perdure) == "from environment: url"
    monkeypatch.setenv("PERDURE_LEASE", "20s")
    folder = write(
        'lease = "10s"\ngrace = "10s"\nhttp_signing_secrets = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"\n[queues.a]'
    )
    said = found_by_doctor(perdure)
    assert said == (f"from environment: lease, url; from {folder}/perdure.toml: grace, http_signing_secrets, queue a")


def found_by_doctor(perdure: Runner) -> str:
    [said] = [each["text"] for each in perdure.json("doctor")["findings"] if each["check"] == "settings"]
    return str(said)


@pytest.mark.parametrize(
    "args", [("stats",), ("worker",), ("worker", "cli_shop:app"), ("worker", "-p", "2"), ("server",)]
)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lease = 30s", "perdure.toml cannot be read as TOML"),
        ("leese = 30", "Did you mean lease?"),
        ("concurrency = 0", "perdure.toml: concurrency is 0"),
        ("[queues.mail]\nconcurrency = 0", "perdure.toml, [queues.mail]: concurrency is 0"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_in_words(
    write: Callable[[str], Path], perdure: Runner, args: tuple[str, ...], text: str, words: str
) -> None:
    write(text)
    result = perdure(*args)
    assert (result.exit_code, result.stdout) == (faults.USAGE, "")
    assert words in result.stderr
    assert result.stderr.startswith("error: perdure.toml")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("args", [("stats",), ("worker",), ("enqueue", "send"), ("doctor", "--json")])
def test_a_file_where_others_may_write_is_refused_in_words(
    write: Callable[[str], Path], perdure: Runner, args: tuple[str, ...]
) -> None:
    folder = write('app = "cli_shop:app"')
    folder.chmod(0o1777)
    result = perdure(*args)
    assert (result.exit_code, result.stdout) == (faults.USAGE, "")
    assert f"{folder}/perdure.toml is not read, because everybody may write to its directory {folder}" in result.stderr
    assert "Traceback" not in result.stderr
    assert "cli_shop" not in sys.modules, "no code of the file's app was run"


def test_doctor_notes_a_file_that_a_group_may_write(write: Callable[[str], Path], perdure: Runner) -> None:
    folder = write("concurrency = 5")
    (folder / "perdure.toml").chmod(0o664)
    notes = [one["text"] for one in perdure.json("doctor")["findings"] if one["check"] == "settings"]
    assert any(f"members of its group may write {folder}/perdure.toml" in note for note in notes)


def test_a_named_file_that_is_missing_is_told_in_words(perdure: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_CONFIG", "missing.toml")
    result = perdure("stats")
    assert result.exit_code == faults.USAGE
    assert "PERDURE_CONFIG names the file missing.toml, which does not exist" in result.stderr


def test_a_fault_of_the_module_is_still_its_own(write: Callable[[str], Path], perdure: Runner) -> None:
    folder = write("concurrency = 5")
    (folder / "cli_broken.py").write_text(
        "from perdure import App, Settings\napp = App(settings=Settings(concurrency=0))"
    )
    result = perdure("worker", "cli_broken:app")
    assert result.exit_code == faults.USAGE
    assert "The module 'cli_broken' cannot be imported" in result.stderr


def test_several_processes_share_out_the_ports_that_begin_in_the_file(
    write: Callable[[str], Path], perdure: Runner
) -> None:
    write("metrics_port = 65535")
    result = perdure("worker", "--processes", "2")
    assert result.exit_code == faults.USAGE
    assert "2 processes from port 65535 on" in result.stderr


def test_help_needs_no_file(write: Callable[[str], Path], perdure: Runner) -> None:
    write("nothing that could be read")
    assert perdure("worker", "--help").exit_code == faults.OK
