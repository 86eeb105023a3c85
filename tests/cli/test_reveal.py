"""Commands show payloads without secrets, for people and for programs; --reveal shows the secrets, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure.model.payload.redaction import DEFAULT_RULES

SECRET = "hunter2-the-secret"
KWARGS = {
    "url": f"https://example.com/?token={SECRET}",
    "headers": {"Authorization": f"Bearer {SECRET}"},
    "note": "seen",
}


@pytest.fixture
def ids(scene: Scene, perdure: Runner) -> dict[str, str]:
    """A waiting job and a dead one, whose arguments and error have a secret in them, and a schedule."""
    dead = scene.dead(message=f"refused: password={SECRET}")
    made = perdure("enqueue", "send", "--args-json", json.dumps(KWARGS))
    assert made.exit_code == 0, made.output
    added = perdure("schedules", "add", "nightly", "send", "--cron", "@hourly", "--args-json", json.dumps(KWARGS))
    assert added.exit_code == 0, added.output
    return {"job": made.stdout.strip().splitlines()[-1], "dead": str(dead)}


COMMANDS = (
    ("jobs", "ls"),
    ("jobs", "show", "{job}"),
    ("jobs", "show", "{dead}"),
    ("dlq", "ls"),
    ("dlq", "groups"),
    ("dlq", "show", "{dead}"),
    ("dlq", "export"),
    ("dlq", "export", "--history"),
    ("schedules", "ls"),
    ("schedules", "show", "nightly"),
    ("explain", "{dead}"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_shows_secrets_only_when_it_is_asked_to(
    perdure: Runner, ids: dict[str, str], command: tuple[str, ...]
) -> None:
    words = [word.format(**ids) for word in command]
    for form in ([], ["--json"]):
        plain = perdure(*words, *form)
        assert plain.exit_code == 0, plain.output
        assert SECRET not in plain.output, form
    if command[0] == "explain":
        return
    revealed = perdure(*words, "--json", "--reveal")
    assert revealed.exit_code == 0, revealed.output
    assert SECRET in revealed.output


def test_what_is_no_secret_is_shown(perdure: Runner, ids: dict[str, str]) -> None:
    shown = perdure.json("jobs", "show", ids["job"])["args"]["kwargs"]
    assert shown == {
        "url": "https://example.com/?token=[redacted]",
        "headers": {"Authorization": "[redacted]"},
        "note": "seen",
    }


def test_an_export_to_a_file_is_redacted_alike(perdure: Runner, ids: dict[str, str], tmp_path: Path) -> None:
    target = tmp_path / "dead.jsonl"
    assert perdure("dlq", "export", "-o", str(target)).exit_code == 0
    assert SECRET not in target.read_text(encoding="utf-8")
    assert perdure("dlq", "export", "-o", str(target), "--yes", "--reveal").exit_code == 0
    assert SECRET in target.read_text(encoding="utf-8")


def test_the_rules_are_those_of_the_settings(perdure: Runner, ids: dict[str, str]) -> None:
    shown = perdure.process("jobs", "show", ids["job"], "--json", env={"PERDURE_REDACT": "note"})
    found = json.loads(shown.stdout)["args"]["kwargs"]
    assert (found["note"], found["url"]) == ("[redacted]", KWARGS["url"])
    shown = perdure.process("jobs", "show", ids["job"], "--json", env={"PERDURE_REDACT": "none"})
    assert json.loads(shown.stdout)["args"]["kwargs"] == KWARGS


def test_a_token_may_have_the_scope_for_payloads(perdure: Runner) -> None:
    assert perdure.json("token", "new", "--scope", "write,args")["entry"].startswith("write+args:sha256:")


def test_the_docs_name_the_default_rules() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rest.md").read_text(encoding="utf-8")
    assert ", ".join(f"`{rule}`" for rule in DEFAULT_RULES) in page.replace(",\n", ", ")
