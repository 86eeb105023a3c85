"""What `perdure doctor` says about retry policies, and that none of it is a problem."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure.cli import faults
from perdure.cli.session import sqlite_path

APP = """
from perdure import App, Retry

app = App()
app.queue("bulk", retry="conservative")

@app.task
def send() -> None: ...

@app.task
def receipt() -> None: ...

@app.task(retry="patient")
def sync() -> None: ...

@app.task(queue="bulk")
def load() -> None: ...

@app.task(retry=Retry.fixed("5s", jitter="none", max_attempts=3))
def on_the_edge() -> None: ...

@app.task(retry=Retry.fixed("5s", jitter="none", max_attempts=4))
def beyond_it() -> None: ...

@app.task(retry="patient", max_attempts=1)
def once() -> None: ...

@app.task(retry="patient", delivery="at_most_once")
def at_most_once() -> None: ...

@app.task(retry="fixed(1s, max_attempts=unlimited)")
def endless() -> None: ...

@app.task(retry=Retry.function(lambda n: 1 / 0))
def broken() -> None: ...
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "doctor_shop.py").write_text(APP)
    monkeypatch.syspath_prepend(str(tmp_path))
    # The app reads its URL when it is imported, and each test has another.
    monkeypatch.delitem(sys.modules, "doctor_shop", raising=False)
    return "doctor_shop:app"


def found(perdure: Runner, *args: str, check: str = "retries") -> list[tuple[str, str]]:
    result = perdure("doctor", "--json", *args)
    assert result.exit_code == 0, result.output
    findings = json.loads(result.stdout)["findings"]
    return [(finding["level"], finding["text"]) for finding in findings if finding["check"] == check]


def test_tasks_that_give_up_within_ten_seconds_are_noted(scene: object, perdure: Runner, shop: str) -> None:
    notes = [text for level, text in found(perdure, "--app", shop) if level == "note"]
    listed = "\n".join(notes)
    assert "2 tasks give up within 10s of the first failure: receipt, send" in listed
    assert "1.8s expected, 3.5s at most" in listed
    assert (
        "first failure: on_the_edge; fixed(5s, jitter=none, max_attempts=3), 3 attempts, keeps trying for 10s" in listed
    )
    assert "first failure: once; " in listed
    assert "first failure: at_most_once; delivered at most once" in listed
    assert "the policy of broken cannot be worked out" in listed
    for lasting in ("sync", "load", "beyond_it", "endless"):
        assert f" {lasting}" not in listed
    assert ("ok", "4 tasks may keep trying for more than 10s") in found(perdure, "--app", shop)


def test_people_are_told_too(scene: object, perdure: Runner, shop: str) -> None:
    assert "give up within 10s" in perdure("doctor", "--app", shop).stdout


def test_without_an_app_the_policy_of_the_settings_is_judged(
    scene: object, perdure: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    [(level, text)] = found(perdure)
    assert level == "note"
    assert "the app's policy" in text
    assert "3.5s at most" in text
    monkeypatch.setenv("PERDURE_RETRY", "patient")
    [(level, text)] = found(perdure)
    assert level == "ok"
    assert "19h18m at least, 1d expected" in text
    monkeypatch.setenv("PERDURE_RETRY", "one-shot")
    [(level, text)] = found(perdure)
    assert (level, "one attempt without retries" in text) == ("note", True)


def test_an_app_that_cannot_be_loaded_is_a_note(scene: object, perdure: Runner) -> None:
    ((level, text),) = found(perdure, "--app", "missing_here:app", check="app")
    assert (level, "cannot be loaded here" in text) == ("note", True)
    assert "missing_here" in text


def test_the_app_of_the_variable_is_looked_at(
    scene: object, perdure: Runner, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_APP", shop)
    assert any("receipt, send" in text for _, text in found(perdure))


def test_looking_makes_no_store(nowhere: Runner, shop: str) -> None:
    assert nowhere("doctor", "--app", shop).exit_code == faults.UNREACHABLE
    assert not list(nowhere.directory.glob("*.db"))


def test_looking_does_not_migrate_the_store_of_the_app(scene: Scene, perdure: Runner, shop: str) -> None:
    path = sqlite_path(scene.url)
    assert path is not None
    scene.close()
    path.write_bytes(b"")
    result = perdure("doctor", "--app", shop, "--json")
    assert result.exit_code == faults.FAILED
    assert "perdure db migrate" in result.stdout
    assert perdure("db", "status").exit_code == faults.FAILED
