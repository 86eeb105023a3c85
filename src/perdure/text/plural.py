"""Counted nouns in messages: `1 retry`, `2 retries`."""

from __future__ import annotations

_VOWELS = frozenset("aeiou")
_HISSING = ("s", "x", "ch", "sh")


def plural(count: float, noun: str) -> str:
    """A number with its noun in the form that fits: `1 job`, `2 jobs`, `0 retries`."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun if count == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """The plural of a regular English noun, or of an expression that ends with one."""
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(_HISSING) else f"{noun}s"
