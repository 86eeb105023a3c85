"""Reads the engines' SQL, one statement per file, once per process.

A statement's header comment is its contract and is not sent to the engine. `/*+ name */` in a statement stands for
`fragments/name.sql`, which may have others in it, or for the text given under that name: the same columns and
conditions are written once.
"""

from __future__ import annotations

import functools
import re
from importlib.resources import files
from importlib.resources.abc import Traversable

_FRAGMENT = re.compile(r"/\*\+ (\w+) \*/")


@functools.cache
def load(package: str, name: str, **given: str) -> str:
    """The statement `sql/<name>.sql` of an engine's package, its fragments filled in."""

    def fill(found: re.Match[str]) -> str:
        return given[found[1]] if found[1] in given else filled(f"fragments/{found[1]}")

    def filled(name: str) -> str:
        return _FRAGMENT.sub(fill, _read(package, name))

    return filled(name)


def _read(package: str, name: str) -> str:
    text = _texts(package)[f"{name}.sql"]
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return "\n".join(lines).strip().removesuffix(";")


@functools.cache
def _texts(package: str) -> dict[str, str]:
    """The files of an engine by name, all read with the first: a process that has run out of descriptors needs none."""
    return read_tree(files(package).joinpath("sql"), ".sql")


def read_tree(folder: Traversable, ending: str, prefix: str = "") -> dict[str, str]:
    """The texts of all files with that ending in a folder and its subfolders, by their path in it."""
    found: dict[str, str] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= read_tree(entry, ending, f"{prefix}{entry.name}/")
        elif entry.name.endswith(ending):
            found[f"{prefix}{entry.name}"] = entry.read_text(encoding="utf-8")
    return found
