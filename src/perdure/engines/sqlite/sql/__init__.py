"""The engine's statements, one per file."""

from __future__ import annotations

from perdure.engines.statements import load


def statement(name: str, **fragments: str) -> str:
    """The statement of that name; see its file for its contract."""
    return load("perdure.engines.sqlite", name, **fragments)
