"""The rules for every source file: one clock, no shared randomness, no printing, one purpose, a bounded size."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "perdure"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE = 350
VAGUE_NAMES = {"utils", "helpers", "common", "manager", "base", "misc"}
PRINTS = {"print", "sys.stdout.write", "sys.stderr.write"}

CLOCK_READS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "date.today",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def dotted(node: ast.expr) -> str:
    """`a.b.c` for an expression of that form; empty for others."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute() if inner := dotted(node.value):
            return f"{inner}.{node.attr}"
        case _:
            return ""


def calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and (name := dotted(node.func)):
            yield name, node.lineno


def names_imported_from(path: Path, module: str) -> set[str]:
    return {
        alias.name
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    }


def imports_whole(path: Path, module: str) -> bool:
    nodes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Import)]
    return any(alias.name == module and alias.asname is None for node in nodes for alias in node.names)


def test_the_rules_see_the_sources() -> None:
    assert len(FILES) > 80


def test_only_the_clock_reads_the_clock() -> None:
    others = [path for path in FILES if name_of(path) != "system/clock.py"]
    reads = [f"{name_of(path)}:{line} {name}" for path in others for name, line in calls(path) if name in CLOCK_READS]
    assert reads == []
    assert [name_of(path) for path in others if names_imported_from(path, "time") - {"sleep"}] == []


def test_nobody_draws_from_the_shared_random() -> None:
    """A `Random` is an argument, or an object of one's own; the functions of the module share one that nobody seeds."""
    kinds = {"Random", "SystemRandom"}
    for path in FILES:
        assert names_imported_from(path, "random") <= kinds, name_of(path)
        if imports_whole(path, "random"):
            # A parameter of that name hides the module; whoever needs the module beside it imports it under another.
            used = {name for name, _ in calls(path) if name.startswith("random.")}
            assert used <= {f"random.{kind}" for kind in kinds}, name_of(path)


def test_the_model_the_store_and_the_runtime_make_no_random_of_their_own() -> None:
    for path in FILES:
        if name_of(path).split("/")[0] in ("model", "store", "runtime", "admin", "observe"):
            made = [name for name, _ in calls(path) if name.split(".")[-1] in ("Random", "SystemRandom")]
            assert made == [], name_of(path)


def test_only_the_command_line_prints() -> None:
    others = [path for path in FILES if not name_of(path).startswith("cli/")]
    prints = [f"{name_of(path)}:{line}" for path in others for name, line in calls(path) if name in PRINTS]
    assert prints == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_module_begins_with_a_sentence_about_its_purpose(path: Path) -> None:
    first = (ast.get_docstring(tree_of(path)) or "").partition("\n")[0]
    assert first.endswith("."), first
    assert len(first.split()) >= 3
    assert first[0].isupper() or first[0] == "`"


def test_no_source_file_is_too_long_for_one_purpose() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [name_of(path) for path in FILES if path.stem in VAGUE_NAMES] == []


def test_no_check_of_types_is_switched_off_without_saying_which() -> None:
    for path in FILES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if "type: ignore" in line:
                assert "type: ignore[" in line, f"{name_of(path)}:{number}"
