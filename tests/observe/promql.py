"""Reads PromQL as far as tests need it: refuses what is not well formed, and says which metrics and labels are used."""

from __future__ import annotations

import re
from collections.abc import Iterator

FUNCTIONS = {"rate", "increase", "histogram_quantile", "absent", "label_values"}
AGGREGATIONS = {"sum", "max", "min", "count"}
_GROUPING = {"by", "on"}
_WORDS = {"and", "or", "unless", "offset"}
_TOKEN = re.compile(
    r"\s*(?:(?P<string>\"[^\"]*\")|(?P<range>\[(?:\d+[smhd]|\$__rate_interval)\])|(?P<number>\d+(?:\.\d+)?[smhd]?\b)"
    r"|(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)|(?P<sign>[=!]~|[=!<>]=|[-+*/<>=(){},]))"
)
Token = tuple[str, str]


def tokens(expression: str) -> Iterator[Token]:
    at = 0
    while at < len(expression.rstrip()):
        found = _TOKEN.match(expression, at)
        assert found, f"not PromQL at {expression[at:]!r}"
        at = found.end()
        assert found.lastgroup is not None
        yield found.lastgroup, found[found.lastgroup]


def used(expression: str) -> set[tuple[str, frozenset[str]]]:
    """Every metric with the labels that are asked of it: in its braces, and by those who group the expression."""
    stream = list(tokens(expression))
    _check_brackets(stream)
    grouped = _grouping_labels(stream)
    found, at = set(), 0
    while at < len(stream):
        kind, text = stream[at]
        following = stream[at + 1][1] if at + 1 < len(stream) else ""
        if kind == "name" and text in _GROUPING:
            at = _end_of(stream, at)
        elif kind == "name" and text in FUNCTIONS | AGGREGATIONS:
            assert following == "(" or following in _GROUPING, f"{text} is not called"
        elif kind == "name" and text not in _WORDS:
            own: set[str] = set()
            if following == "{":
                end = _end_of(stream, at)
                own = {name for one, name in stream[at:end][2:] if one == "name"}
                at = end
            found.add((text, frozenset(own | grouped)))
        at += 1
    return found


def _check_brackets(stream: list[Token]) -> None:
    open_ones = []
    for _, text in stream:
        if text in "({":
            open_ones.append({"(": ")", "{": "}"}[text])
        elif text in (")", "}"):
            assert open_ones
            assert open_ones.pop() == text
    assert not open_ones


def _grouping_labels(stream: list[Token]) -> set[str]:
    labels: set[str] = set()
    for at, (_, text) in enumerate(stream):
        if text in _GROUPING:
            labels |= {name for kind, name in stream[at + 1 : _end_of(stream, at)] if kind == "name"}
    return labels


def _end_of(stream: list[Token], at: int) -> int:
    return next(place for place in range(at, len(stream)) if stream[place][1] in (")", "}"))
