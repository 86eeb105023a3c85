"""Qualifies every function, operator and type of a statement with pg_catalog, so that no search path can change it.

PostgreSQL looks unqualified names up along the session's search path, and prefers the closest argument types over all
schemas on it: a role that may create functions in `public` could have its own `unnest(uuid[])` run by every worker.
The search path is not ours to set on a caller's connection, and does not stay set behind a pooler. Qualified names need
neither, and cost no round trip.

The files keep ordinary SQL; tests/arch/test_statements.py lists what they must not use because it cannot be qualified
(IN, BETWEEN, LIKE, NULLIF, IS DISTINCT FROM). Every operator becomes `OPERATOR(pg_catalog.+)`, and all of these have
the same precedence: where operators of different precedence meet, the files need parentheses. No parser of PostgreSQL's
grammar is a dependency of Perdure, and the statements use little of it, so a tokenizer is enough.
"""

from __future__ import annotations

import re

GRAMMAR = frozenset(("ALL", "ANY", "ARRAY", "COALESCE", "EXTRACT", "GREATEST", "LEAST"))
"""Words before a parenthesis that are part of PostgreSQL's grammar: no search path applies to them."""
TYPES = frozenset(("bytea", "json", "text", "uuid"))
"""Types that are looked up by name; `bigint`, `integer`, `boolean` and `double precision` belong to the grammar."""

_TOKEN = re.compile(
    r"(?P<text>'[^']*')|(?P<comment>--[^\n]*)|(?P<parameter>:[a-z_]+|\$\d+)|(?P<number>\d+)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*|\"[^\"]+\")|(?P<space>\s+)|(?P<cast>::)"
    r"|(?P<operator><>|<=|>=|\|\||[=<>+*/-])|(?P<other>.)"
)
_AFTER_OPERAND = frozenset(("word", "number", "parameter", "text"))
_BEFORE_OPERAND = frozenset(
    ("AND", "BY", "CASE", "ELSE", "LIMIT", "NOT", "OR", "RETURNING", "SELECT", "THEN", "WHEN", "WHERE")
)
_ENDS_SET = frozenset(("FROM", "WHERE", "RETURNING"))


def qualify(text: str) -> str:
    """The statement with all names that PostgreSQL would look up along the search path qualified."""
    tokens = [(found.lastgroup or "", found[0]) for found in _TOKEN.finditer(text)]
    parts: list[str] = []
    # The last two tokens that are not space, and for each open parenthesis whether a SET clause is open in it.
    before, previous = ("", ""), ("", "")
    in_set = [False]
    for (kind, token), (_, following) in zip(tokens, [*tokens[1:], ("", "")], strict=True):
        if kind in ("space", "comment"):
            parts.append(token)
            continue
        if kind == "operator":
            is_assignment = token == "=" and in_set[-1] and before[1] in ("SET", ",")
            is_name = is_assignment or not _ends_operand(previous)
            parts.append(token if is_name else f"OPERATOR(pg_catalog.{token})")
        elif kind == "word" and previous[1] != "." and _is_looked_up(token, following):
            parts.append(f"pg_catalog.{token.lower()}")
        else:
            parts.append(token)
        _follow(token, in_set)
        before, previous = previous, (kind, token)
    return "".join(parts)


def _is_looked_up(word: str, following: str) -> bool:
    # By convention no space stands between a function and its parenthesis; keywords, aliases and CTEs have one.
    return word in TYPES or (following == "(" and word not in GRAMMAR)


def _ends_operand(token: tuple[str, str]) -> bool:
    """Whether an operator that follows is a binary one; else it is a sign, or the `*` of `COUNT(*)` or `one.*`."""
    kind, text = token
    return text in (")", "]") or (kind in _AFTER_OPERAND and text not in _BEFORE_OPERAND)


def _follow(token: str, in_set: list[bool]) -> None:
    if token == "(":
        in_set.append(False)
    elif token == ")":
        in_set.pop()
    elif token == "SET":
        in_set[-1] = True
    elif token in _ENDS_SET:
        in_set[-1] = False
