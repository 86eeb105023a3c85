"""The rules for SQL: one statement per file, its contract on top, explicit columns, and every file used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ENGINES = sorted(path.parent for path in (Path(__file__).parents[2] / "src" / "perdure" / "engines").glob("*/sql"))
STATEMENTS = [path for engine in ENGINES for path in sorted((engine / "sql").glob("*.sql"))]


def body(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_every_statement_states_its_contract(path: Path) -> None:
    header = path.read_text(encoding="utf-8").partition("\n" + body(path).lstrip()[:6])[0]
    assert re.match(r"-- [a-z, ]+: .+", header)
    for part in ("-- Parameters:", "-- Rows:", "-- Concurrency:", "-- Indexes:"):
        assert part in header


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_file_holds_one_statement_with_explicit_columns(path: Path) -> None:
    text = body(path)
    assert ";" not in text.strip().removesuffix(";")
    assert not re.search(r"SELECT\s+\*", text)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_every_statement_is_used(engine: Path) -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in engine.rglob("*.py"))
    unused = [path.stem for path in (engine / "sql").glob("*.sql") if f'"{path.stem}"' not in code]
    assert unused == []
