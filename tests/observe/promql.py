"""Reads PromQL as far as tests need it: grammar, types of values, and which labels every vector has.

Prometheus takes many an expression that can never give anything: a label that is not there, two sides whose labels
differ. Here these are refused too. What is not read here is not used by the rules and the dashboard.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["scalar", "vector", "matrix", "string"]
Labels = frozenset[str]

AGGREGATIONS = {"sum", "max", "min", "count", "avg"}
FUNCTIONS: dict[str, tuple[Kind, ...]] = {
    "rate": ("matrix",),
    "increase": ("matrix",),
    "histogram_quantile": ("scalar", "vector"),
    "absent": ("vector",),
}
_LEVELS = (("or",), ("and", "unless"), ("==", "!=", "<=", ">=", "<", ">"), ("+", "-"), ("*", "/"))
"""Operators from those that bind least to those that bind most."""
_SETS = {"and", "or", "unless"}
_TOKEN = re.compile(
    r"(?P<string>\"[^\"\\]*\")|(?P<duration>(?:\d+(?:ms|[ywdhms]))+\b)|(?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?\b)"
    r"|(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)|(?P<sign>=~|!~|==|!=|<=|>=|[-+*/<>=(){}\[\],])"
)


class NotPromQL(Exception):  # noqa: N818 - says what the text is
    """The expression cannot be read, or can never give anything."""


@dataclass(frozen=True)
class Value:
    """What a part of an expression gives: its type, the labels of its series, and the metrics in it."""

    kind: Kind
    labels: Labels = frozenset()
    metrics: frozenset[str] = frozenset()


def read(expression: str, exported: Mapping[str, Labels]) -> Value:
    """What an expression over these metrics, given with the labels that each has, comes to."""
    reader = _Reader(expression, exported)
    value = reader.operation(0)
    reader.need(not reader.left, f"{reader.left[:3]} is left over")
    return value


def tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(expression):
        if expression[at].isspace():
            at += 1
            continue
        found = _TOKEN.match(expression, at)
        if found is None or found.lastgroup is None:
            raise NotPromQL(f"nothing begins like {expression[at : at + 20]!r}")
        at = found.end()
        yield found.lastgroup, found[found.lastgroup]


class _Reader:
    """Goes through an expression from left to right."""

    def __init__(self, expression: str, exported: Mapping[str, Labels]) -> None:
        self.left = list(tokens(expression))
        self._expression = expression
        self._exported = exported

    def need(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise NotPromQL(f"{otherwise}: {self._expression}")

    def operation(self, level: int) -> Value:
        if level == len(_LEVELS):
            return self._offset(self._ranged(self._single()))
        value = self.operation(level + 1)
        while self.left and self.left[0][1] in _LEVELS[level] and self.left[0][0] != "string":
            sign = self._take()[1]
            on = self._names() if self._is_next("on") else None
            value = self._joined(sign, value, self.operation(level + 1), on)
        return value

    def _joined(self, sign: str, left: Value, right: Value, on: Labels | None) -> Value:
        self.need({left.kind, right.kind} <= {"scalar", "vector"}, f"{sign} between {left.kind} and {right.kind}")
        metrics = left.metrics | right.metrics
        if left.kind == right.kind == "vector":
            if on is None:
                self.need(left.labels == right.labels, f"{sign} never matches {set(left.labels ^ right.labels)}")
            else:
                self.need(on <= left.labels & right.labels, f"{sign} on {set(on)}, which is not on both sides")
            return Value("vector", left.labels, metrics)
        self.need(sign not in _SETS, f"{sign} needs vectors")
        return Value("vector" if "vector" in (left.kind, right.kind) else "scalar", left.labels | right.labels, metrics)

    def _single(self) -> Value:
        self.need(bool(self.left), "something is missing at the end")
        kind, text = self._take()
        if text == "(":
            value = self.operation(0)
            self._expect(")")
            return value
        if kind == "number":
            return Value("scalar")
        if kind == "string":
            return Value("string")
        self.need(kind == "name", f"{text!r} is no value")
        if text in AGGREGATIONS:
            return self._aggregation()
        if text in FUNCTIONS:
            return self._call(text)
        return self._selector(text)

    def _aggregation(self) -> Value:
        by = self._names() if self._is_next("by") else frozenset()
        self._expect("(")
        inner = self.operation(0)
        self._expect(")")
        self.need(inner.kind == "vector", f"an aggregation of a {inner.kind}")
        self.need(by <= inner.labels, f"by {set(by - inner.labels)}, which is not there")
        return Value("vector", by, inner.metrics)

    def _call(self, name: str) -> Value:
        self._expect("(")
        given = [self.operation(0)]
        while self._is_next(","):
            given.append(self.operation(0))
        self._expect(")")
        self.need(tuple(value.kind for value in given) == FUNCTIONS[name], f"{name} of {[one.kind for one in given]}")
        metrics = frozenset(metric for value in given for metric in value.metrics)
        if name == "histogram_quantile":
            self.need("le" in given[1].labels, "a quantile without le")
            return Value("vector", given[1].labels - {"le"}, metrics)
        return Value("vector", frozenset() if name == "absent" else given[0].labels, metrics)

    def _selector(self, name: str) -> Value:
        self.need(name in self._exported, f"{name} is not exported")
        labels = self._exported[name]
        if self._is_next("{"):
            while not self._is_next("}"):
                label = self._take()[1]
                self.need(label in labels, f"{name} has no label {label}")
                self.need(self._take()[1] in ("=", "!=", "=~", "!~"), f"{label} is not compared")
                kind, text = self._take()
                self.need(kind == "string", f"{label} is compared with {text}")
                re.compile(text[1:-1])
                self.need(self._is_next(",") or self.left[0][1] == "}", "a comma is missing")
        return Value("vector", labels, frozenset({name}))

    def _ranged(self, value: Value) -> Value:
        if not self._is_next("["):
            return value
        self.need(value.kind == "vector", f"a range of a {value.kind}")
        self.need(self._take()[0] == "duration", "a range without a duration")
        self._expect("]")
        return Value("matrix", value.labels, value.metrics)

    def _offset(self, value: Value) -> Value:
        if self._is_next("offset"):
            self.need(value.kind in ("vector", "matrix"), f"an offset of a {value.kind}")
            self.need(self._take()[0] == "duration", "an offset without a duration")
        return value

    def _names(self) -> Labels:
        self._expect("(")
        found: list[str] = []
        while not self._is_next(")"):
            kind, text = self._take()
            self.need(kind == "name", f"{text!r} is no label")
            found.append(text)
            self.need(self._is_next(",") or self.left[0][1] == ")", "a comma is missing")
        return frozenset(found)

    def _is_next(self, text: str) -> bool:
        """Whether this comes next; it is passed over then."""
        if self.left and self.left[0][1] == text and self.left[0][0] != "string":
            self.left.pop(0)
            return True
        return False

    def _expect(self, text: str) -> None:
        self.need(self._is_next(text), f"{text} is missing")

    def _take(self) -> tuple[str, str]:
        self.need(bool(self.left), "something is missing at the end")
        return self.left.pop(0)
