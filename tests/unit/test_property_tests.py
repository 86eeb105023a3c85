"""That property tests draw the same examples in every run of `make test`, and new ones only where that is asked for."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[1]
DECIDED_IN_CONFTEST = {"derandomize", "database", "deadline", "print_blob"}

PROBE = """
import importlib, os
from tests.conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

for name in os.environ["LOADED"].split():
    importlib.import_module(name)

@settings(max_examples=examples(100))
@given(st.integers(), st.floats())
def test_draw(number, real):
    print("drawn:", number, real)
"""


def drawn(tmp_path: Path, loaded: str = "", **variables: str) -> list[str]:
    """All that a property test draws in a process of its own, which loaded these modules before."""
    path = tmp_path / "probe.py"
    path.write_text(PROBE)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE_", "PYTEST_"))}
    environment = {**kept, "PYTHONPATH": str(TESTS.parent), "LOADED": loaded, **variables}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the other plugins take a while to load
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "_hypothesis_pytestplugin",
        "-p",
        "tests.conftest",
        "-s",
        str(path),
    ]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "drawn:" in line]


def test_examples_do_not_depend_on_loaded_modules_nor_on_hashes(tmp_path: Path) -> None:
    first = drawn(tmp_path, PYTHONHASHSEED="1")
    assert len(first) >= 100
    assert drawn(tmp_path, "perdure.cli.main perdure.web.app", PYTHONHASHSEED="2", CI="true") == first


def test_fresh_examples_are_more_and_new_unless_the_seed_is_given(tmp_path: Path) -> None:
    options = {"PERDURE_HYPOTHESIS": "fresh", "PERDURE_EXAMPLES": "3"}
    one, same, other = (
        drawn(tmp_path, **options, **seed) for seed in ({"PERDURE_SEED": "1"}, {"PERDURE_SEED": "1"}, {})
    )
    assert len(one) >= 300
    assert one == same
    assert one != other


def test_no_profile_looks_at_the_time_or_at_earlier_runs() -> None:
    for name in ("fixed", "fresh"):
        profile = settings.get_profile(name)
        assert profile.database is None
        assert profile.deadline is None
        assert HealthCheck.too_slow in profile.suppress_health_check
        assert profile.derandomize == (name == "fixed")


def test_only_conftest_decides_how_examples_are_drawn() -> None:
    wrong = []
    for path in sorted(TESTS.rglob("*.py")):
        if path != TESTS / "conftest.py" and "settings(" in (text := path.read_text()):
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
            wrong += [f"{path.relative_to(TESTS)}:{call.lineno}" for call in calls if decides_itself(call)]
    assert wrong == []


def test_the_long_target_selects_every_property_test() -> None:
    """By the mark `hypothesis`, which Hypothesis sets by itself on a test that has `@given`, and on no other."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            calls = [ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)]
            if isinstance(node, ast.FunctionDef) and "run_state_machine_as_test" in calls:
                assert "pytest.mark.hypothesis" in map(ast.unparse, node.decorator_list), f"{path.name}: {node.name}"


def decides_itself(call: ast.Call) -> bool:
    """Whether a call of Hypothesis's `settings` says what the profile must say."""
    if ast.unparse(call.func).split(".")[-1] != "settings":
        return False
    given = {keyword.arg or "": ast.unparse(keyword.value) for keyword in call.keywords}
    counts = given.get("max_examples", "examples(1)")
    # A list of its own would replace the profile's, which has `too_slow`.
    checks = given.get("suppress_health_check", "list(HealthCheck)")
    return bool(given.keys() & DECIDED_IN_CONFTEST) or "examples(" not in counts or checks != "list(HealthCheck)"


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("settings(max_examples=examples(5))", False),
        ("settings(max_examples=5)", True),
        ("hypothesis.settings(deadline=None)", True),
        ("settings(derandomize=False)", True),
        ("settings(suppress_health_check=[HealthCheck.too_slow])", True),
        ("settings(suppress_health_check=list(HealthCheck))", False),
    ],
)
def test_settings_that_decide_themselves_are_found(text: str, is_wrong: bool) -> None:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert decides_itself(call) == is_wrong
