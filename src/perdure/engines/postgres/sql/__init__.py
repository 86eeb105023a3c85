"""The engine's statements, one per file, in the store's own schema.

The files are written for the schema `perdure` and name their parameters `:so`. What is sent has the schema's real name,
numbered parameters, and `pg_catalog` before every name that the search path could change; values are put in order by
name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from psycopg import pq

from perdure.engines.postgres.qualify import qualify
from perdure.engines.statements import load

PACKAGE = "perdure.engines.postgres"

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_BYTES = re.compile(r"(?<!:):([a-z_]+)::bytea(?!\[)")
_SCHEMA = re.compile(r"\bperdure\.(?=[a-z])")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement as the server takes it, and the names of its parameters in order."""

    name: str
    text: str
    names: tuple[str, ...]
    formats: list[pq.Format] | None
    """How the parameters are written, where one of them is bytes."""

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        """The values of the parameters in order."""
        return list(map(given.__getitem__, self.names))


@functools.cache
def statement(name: str, schema: str) -> Statement:
    """The statement of that name in that schema; see its file for its contract."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    text = load(PACKAGE, name)
    raw = set(_BYTES.findall(text))
    text = in_schema(qualify(text), schema)
    text = _PARAMETER.sub(number, text)
    formats = [pq.Format.BINARY if name in raw else pq.Format.TEXT for name in names] if raw else None
    return Statement(name=name, text=text, names=tuple(names), formats=formats)


def in_schema(text: str, schema: str) -> str:
    """The text with the tables of that schema."""
    return _SCHEMA.sub(f"{quoted(schema)}.", text)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
