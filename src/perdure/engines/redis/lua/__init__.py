"""Reads the scripts, one per verb and file, once per process.

A script's header comment is its contract and is not sent to the server. A line `--+ name` stands for
`fragments/name.lua`: what several scripts need is written once.
"""

from __future__ import annotations

import functools
import hashlib
from importlib.resources import files

import msgspec

from perdure.engines.statements import read_tree


class LuaScript(msgspec.Struct, frozen=True, kw_only=True):
    """A script as the server takes it, and the name that the server gives it."""

    text: str
    sha: str


@functools.cache
def script(name: str) -> LuaScript:
    """The script `lua/<name>.lua`, its fragments filled in."""
    text = "\n".join(_lines(name))
    return LuaScript(text=text, sha=hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _lines(name: str) -> list[str]:
    found: list[str] = []
    for line in _texts()[f"{name}.lua"].splitlines():
        if line.startswith("--+ "):
            found += _lines(f"fragments/{line.removeprefix('--+ ')}")
        elif line.strip() and not line.lstrip().startswith("--"):
            found.append(line)
    return found


@functools.cache
def _texts() -> dict[str, str]:
    """All scripts by name, read with the first: a process that has run out of descriptors needs none."""
    return read_tree(files(__package__), ".lua")
