"""Finds the known names that a misspelt one may stand for, in bounded time."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

_LONGEST = 60
"""Characters of a name that are compared; the comparison takes time that grows with the square of the length."""

_MOST_KNOWN = 500
"""How many known names are compared."""

_NEAR = 0.68
"""How alike two names must be, from 0 to 1: one wrong letter in four is near enough, one in three is not."""

_SHORTEST_BEGINNING = 3


def near_names(name: object, known: Iterable[str], most: int = 3, *, likeness: float = _NEAR) -> list[str]:
    """The known names that are spelt nearly like this one, the nearest first.

    Upper and lower case, hyphens and underscores count as the same. The beginning of a name is near to it.
    """
    if not isinstance(name, str):
        return []
    by_spelling = {_plain(each[:_LONGEST]): each for each in islice(known, _MOST_KNOWN)}
    asked = _plain(name[:_LONGEST])
    found = difflib.get_close_matches(asked, by_spelling, n=most, cutoff=likeness)
    if not found and len(asked) >= _SHORTEST_BEGINNING:
        found = [each for each in by_spelling if each.startswith(asked)][:most]
    return [by_spelling[each] for each in found]


def suggestion(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that is most like this one; None if none is near."""
    return next(iter(near_names(name, known, most=1, likeness=cutoff)), None)


def did_you_mean(name: object, known: Iterable[str]) -> str | None:
    """The question that names the nearest ones; None where none is near."""
    near = near_names(name, known)
    return f"Did you mean {' or '.join(near)}?" if near else None


def in_brackets(name: str, known: Iterable[str]) -> str:
    """The question that names the nearest one, in brackets and after a space; empty where none is near."""
    near = suggestion(name, sorted(known))
    return "" if near is None else f" (did you mean {near!r}?)"


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
