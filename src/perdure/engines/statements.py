"""Reads the engines' SQL, one statement per file, once per process.

A statement's header comment is its contract and is not sent to the engine. `/*+ name */` in a statement stands for
`fragments/name.sql`, which may have others in it, or for the text given under that name: the same columns and
conditions are written once.
"""

from __future__ import annotations

import functools
import re
from importlib.resources import files

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
    text = files(package).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return "\n".join(lines).strip().removesuffix(";")
