"""What is printed is harmless, aligned, and says times as people do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.admin.scene import Scene
from tests.cli.conftest import Runner

from perdure.cli import output
from perdure.cli.output import Column

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("bell\x07 back\x08 nul\x00", "bell back nul"),
        ("c1\x9b31m", "c131m"),
        ("turned\u202eback", "turnedback"),
        ("line\r\nend", "line\nend"),
        ("lone\ud800", "lone\\ud800"),
    ],
)
def test_what_could_command_a_terminal_is_taken_out(text: str, clean: str) -> None:
    assert output.harmless(text) == clean


def test_a_cell_is_one_line_and_not_endless() -> None:
    assert output.one_line("a\n b\tc") == "a b c"
    assert len(output.one_line("x" * 9999)) == 500


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (1.5, "1.5s"),
        (9, "9s"),
        (59.6, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (3605, "1h"),
        (86400 * 3 + 3600 * 4 + 60, "3d4h"),
    ],
)
def test_durations_are_rough(seconds: float, text: str) -> None:
    assert output.rough(timedelta(seconds=seconds)) == text


def test_times_are_absolute_and_relative() -> None:
    assert output.when(NOW + timedelta(minutes=5), NOW) == "2030-01-01 12:05:00Z (in 5m)"
    assert output.when(NOW - timedelta(hours=2), NOW) == "2030-01-01 10:00:00Z (2h ago)"
    assert output.relative(NOW, NOW) == "now"
    assert output.when(None, NOW) == "-"


def test_a_plain_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    output.table([Column("NAME"), Column("N", is_number=True)], [["a", "1"], ["bcdef", "200"]])
    assert capsys.readouterr().out == "NAME     N\na        1\nbcdef  200\n"


def test_on_a_narrow_terminal_no_column_is_lost(scene: Scene, perdure: Runner) -> None:
    job_id = scene.dead(task="a_task_with_quite_a_long_name", message="a message that is long " * 9)
    for columns in ("60", "100", "300"):
        _, screen = perdure.terminal("dlq", "ls", env={"COLUMNS": columns, "NO_COLOR": "1"})
        assert job_id in screen
        assert all(heading in screen for heading in ("ID", "TASK", "STATE", "ATTEMPT", "CREATED", "WHEN", "WHY"))
    _, screen = perdure.terminal("doctor", env={"COLUMNS": "60", "NO_COLOR": "1"})
    assert all(heading in screen for heading in ("CHECK", "LEVEL", "FOUND"))


def test_json_keeps_control_characters_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit({"a": "\x1b[31m \x9b \u202e é"})
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\x9b" not in printed
    assert "\u202e" not in printed
    assert "é" in printed
    assert json.loads(printed) == {"a": "\x1b[31m \x9b \u202e é"}


def test_on_a_terminal_tables_are_coloured_and_job_data_commands_nothing(scene: Scene, perdure: Runner) -> None:
    scene.dead(message="evil \x1b]0;owned\x07 \x9b2J")
    code, screen = perdure.terminal("dlq", "ls")
    assert code == 0
    assert "\x1b[31mdead" in screen
    assert "\x1b]0;" not in screen
    assert "\x9b" not in screen


def test_no_color_is_respected_on_a_terminal(scene: Scene, perdure: Runner) -> None:
    job_id = scene.dead()
    for args in (["dlq", "ls"], ["jobs", "show", job_id], ["jobs", "show", "nonsense"]):
        _, screen = perdure.terminal(*args, env={"NO_COLOR": "1"})
        assert "\x1b[3" not in screen
        assert "\x1b[9" not in screen


def test_without_a_terminal_there_are_no_escapes(scene: Scene, perdure: Runner) -> None:
    job_id = scene.dead()
    for args in (["dlq", "ls"], ["jobs", "show", job_id], ["jobs", "show", "nonsense"]):
        done = perdure.process(*args)
        assert "\x1b" not in done.stdout + done.stderr
