"""docs/cli.md names every command, option and exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from perdure.cli import faults
from perdure.cli.main import root

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
EVERYWHERE = {"--url", "--json", "--help", "-h"}


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


ALL = dict(commands(root, "perdure"))


def section(path: str) -> str:
    found = re.search(rf"^### {re.escape(path)}\n(.*?)(?=^### |\Z)", DOCS, re.DOTALL | re.MULTILINE)
    assert found, f"docs/cli.md has no section for {path}"
    return found[1]


@pytest.mark.parametrize("path", ALL)
def test_every_command_and_option_is_documented(path: str) -> None:
    text = section(path)
    for parameter in ALL[path].params:
        if isinstance(parameter, click.Option):
            for name in {*parameter.opts, *parameter.secondary_opts} - EVERYWHERE:
                if name.startswith("--"):
                    assert f"`{name}" in text, f"{path} {name}"


@pytest.mark.parametrize("path", ALL)
def test_no_option_is_documented_that_does_not_exist(path: str) -> None:
    parameters = ALL[path].params
    known = {name for one in parameters for name in (*one.opts, *one.secondary_opts)} | EVERYWHERE
    assert set(re.findall(r"`(--[a-z-]+)", section(path))) <= known


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_an_example_and_help_for_each_option(path: str) -> None:
    assert f"{path}" in section(path).partition("```")[2]
    assert all(parameter.help for parameter in ALL[path].params if isinstance(parameter, click.Option))


@pytest.mark.parametrize("path", ALL)
def test_every_command_takes_url_and_json(path: str) -> None:
    names = {name for parameter in ALL[path].params for name in parameter.opts}
    # The demo makes a throw-away store of its own.
    wanted = {"--json"} if path == "perdure demo" else {"--url", "--json"}
    assert wanted <= names


def test_documented_commands_exist() -> None:
    assert set(re.findall(r"^### (.+)$", DOCS, re.MULTILINE)) == set(ALL)


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(faults).items() if name.isupper() and isinstance(value, int)}
    assert codes == {int(code) for code in re.findall(r"^\| (\d+) \|", DOCS, re.MULTILINE)}
