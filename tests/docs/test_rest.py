"""The page about the API names every operation with its scope, every problem, every scope, and nothing else."""

from __future__ import annotations

import inspect
import re

import pytest
from tests.docs.pages import page, section, table_names

from perdure.web.access.tokens import SCOPES
from perdure.web.app import OPERATIONS, create_app
from perdure.web.operation import Operation
from perdure.web.problems import TITLES

TEXT = page("rest.md")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_documented_with_its_scope(operation: Operation) -> None:
    needs = "–" if operation.scope is None else f"`{operation.scope}`"
    assert f"| `{operation.method} {operation.path}` | {needs} | " in section(TEXT, "Operations")


def test_no_operation_is_documented_that_does_not_exist() -> None:
    documented = table_names(section(TEXT, "Operations"))
    assert sorted(documented) == sorted(f"{operation.method} {operation.path}" for operation in OPERATIONS)


def test_every_problem_is_documented_with_its_status() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", section(TEXT, "Problems"), re.MULTILINE)
    assert rows == [(code, str(status)) for code, (status, _) in TITLES.items()]


def test_every_scope_is_documented() -> None:
    assert table_names(section(TEXT, "Who may use it")) == list(SCOPES)


def test_every_option_of_the_application_is_documented() -> None:
    options = set(inspect.signature(create_app).parameters) - {"app"}
    assert set(table_names(section(TEXT, "In your own application"))) == options
