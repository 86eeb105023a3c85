"""The SQL files: one statement each, with a contract on top, and none forgotten."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from pathlib import Path

import pytest

from perdure.engines.statements import load

FOLDER = Path(str(files("perdure.engines.sqlite"))) / "sql"
STATEMENTS = sorted(file.stem for file in FOLDER.glob("*.sql"))
FRAGMENTS = sorted(file.stem for file in (FOLDER / "fragments").glob("*.sql"))
GIVEN = {"rows": "(?)", "among": "TRUE", "through": ""}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_has_its_contract_on_top(name: str) -> None:
    header = [line for line in (FOLDER / f"{name}.sql").read_text().splitlines() if line.startswith("--")]
    text = "\n".join(header)
    for part in ("-- Parameters: ", "-- Rows: ", "-- Concurrency: ", "-- Indexes: "):
        assert part in text


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_file_holds_one_statement_without_its_comments(name: str) -> None:
    text = load("perdure.engines.sqlite", name, **GIVEN)
    assert "--" not in text
    assert "/*+" not in text
    assert sqlite3.complete_statement(f"{text};")
    assert ";" not in text
    assert "SELECT *" not in text


def test_every_statement_is_used() -> None:
    code = "\n".join(file.read_text() for file in FOLDER.parent.glob("*.py"))
    assert [name for name in STATEMENTS if f'"{name}"' not in code] == []


def test_every_fragment_is_used() -> None:
    text = "\n".join((FOLDER / f"{name}.sql").read_text() for name in STATEMENTS)
    assert [name for name in FRAGMENTS if f"/*+ {name} */" not in text] == []
