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


POSTGRES = [path for path in (ENGINES[0].parent / "postgres" / "sql").rglob("*.sql") if "migrations" not in path.parts]
BEFORE_A_PARENTHESIS = {
    *("AND", "AS", "CONFLICT", "ELSE", "EXISTS", "FROM", "LATERAL", "LIMIT", "MATERIALIZED", "OR", "OVER", "SELECT"),
    *("USING", "VALUES", "WHEN", "WHERE"),
}


@pytest.mark.parametrize("path", POSTGRES, ids=lambda path: path.stem)
def test_statements_for_postgres_use_only_what_can_be_qualified(path: Path) -> None:
    """PostgreSQL looks the operators of these words up along the search path, and they cannot name a schema."""
    text = re.sub(r"'[^']*'", "''", body(path))
    words = r"\bIN\b|\bBETWEEN\b|\bI?LIKE\b|\bSIMILAR\b|\bNULLIF\b|\bDISTINCT\s+FROM\b|\bOVERLAPS\b"
    assert re.findall(words, text) == []
    assert re.findall(r"\bCASE\s+(?!WHEN\b)\w+", text) == [], "CASE value WHEN … compares with an operator"
    assert re.findall(r"(?<!FROM )\bUSING \((?!\n)", text) == [], "a join with USING compares with an operator"
    called = set(re.findall(r"\b([A-Z_]+) \(", text))
    assert called - BEFORE_A_PARENTHESIS == set(), "the parenthesis of a call follows its function without a space"
