"""Finds the known names that a misspelt one may stand for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 60
"""Characters of a name that are compared; the comparison takes time that grows with the square of the length."""

_NEAR = 0.68
"""How alike two names must be, from 0 to 1: one wrong letter in four is near enough, one in three is not."""

_SHORTEST_BEGINNING = 3


def near_names(name: object, known: Iterable[str], most: int = 3, *, likeness: float = _NEAR) -> list[str]:
    """The known names that are spelt nearly like this one, the nearest first.

    Upper and lower case, hyphens and underscores count as the same. The beginning of a name is near to it.
    """
    if not isinstance(name, str):
        return []
    by_spelling = {_plain(each): each for each in known}
    asked = _plain(name[:_LONGEST])
    found = difflib.get_close_matches(asked, by_spelling, n=most, cutoff=likeness)
    if not found and len(asked) >= _SHORTEST_BEGINNING:
        found = [each for each in by_spelling if each.startswith(asked)][:most]
    return [by_spelling[each] for each in found]


def did_you_mean(name: object, known: Iterable[str]) -> str | None:
    """The question that names the nearest ones; None where none is near."""
    near = near_names(name, known)
    return f"Did you mean {' or '.join(near)}?" if near else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
