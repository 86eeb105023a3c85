"""Prints a retry policy as text: readable, canonical, and read back by `policy_parser`.

    exponential(2s, factor=3, cap=10m, jitter=equal, max_attempts=12).never(ValueError).on(TimeoutError, 5s)

What equals the constructor's default is left out; rules are sorted by name.
"""

from __future__ import annotations

import json
import re
from typing import assert_never

import msgspec

from perdure.errors import BadPolicy
from perdure.model.policy.curve import Delays, Exponential, Fixed, Function, Linear, usual_limit
from perdure.model.policy.jitter import Jitter
from perdure.model.policy.limit import HIGHEST_LIMIT
from perdure.model.policy.retry import Never, Retry, Rule, UseDelay, UsePolicy
from perdure.text.duration import format_duration

LONGEST_TEXT = 4096
"""In bytes of UTF-8."""

PLAIN_NAME = re.compile(r"[^\W\d][\w.<>]*")
"""A name of an error that stands in the text as it is; any other is quoted as JSON quotes it."""


def policy_text(policy: Retry) -> str:
    """The text of a policy that can be stored."""
    for each in (policy, *(rule.policy for _, rule in policy.rules if isinstance(rule, UsePolicy))):
        if isinstance(each.curve, Function):
            raise BadPolicy(
                "A policy made of a Python function has no text form, so it cannot be stored on a job.",
                "Give it to the task, or write its delays as data: Retry.delays([…]).",
            )
    text = describe_policy(policy)
    if len(text.encode()) > LONGEST_TEXT:
        raise BadPolicy(f"The policy's text is longer than {LONGEST_TEXT:,} bytes.", "Use fewer delays or rules.")
    return text


def describe_policy(policy: Retry) -> str:
    """The policy for people to read; the same as its text, where it has one."""
    return _head(policy) + _rules(policy.rules)


def _head(policy: Retry) -> str:
    if policy.max_attempts == 1 and msgspec.structs.replace(policy, rules=()) == Retry.never_retry():
        return "never_retry()"
    name, first, usual_jitter = _curve(policy)
    options = [
        f"cap={format_duration(policy.cap)}" if policy.cap is not None else "",
        f"jitter={_jitter(policy.jitter)}" if policy.jitter != usual_jitter else "",
        f"max_attempts={_count(policy.max_attempts, HIGHEST_LIMIT)}"
        if policy.max_attempts != usual_limit(policy.curve)
        else "",
        f"within={format_duration(policy.within)}" if policy.within is not None else "",
        f"max_recoveries={_count(policy.max_recoveries, None)}" if policy.max_recoveries != 0 else "",
        "jitter_over_cap=true" if policy.jitter_over_cap else "",
        "caps_jobs=true" if policy.caps_jobs else "",
    ]
    return f"{name}({', '.join([first, *filter(None, options)])})"


def _curve(policy: Retry) -> tuple[str, str, Jitter]:
    """The constructor's name, its first arguments, and the jitter that it has when none is given."""
    curve = policy.curve
    match curve:
        case Fixed():
            return "fixed", format_duration(curve.every), 0.15 if curve.every else "none"
        case Linear():
            return "linear", format_duration(curve.step), "full"
        case Exponential():
            factor = "" if curve.factor == 2 else f", factor={curve.factor!r}"
            return "exponential", format_duration(curve.base) + factor, "full"
        case Delays():
            return "delays", f"[{', '.join(format_duration(wait) for wait in curve.waits)}]", "none"
        case Function():
            return "function", str(getattr(curve.call, "__qualname__", "…")), "none"
        case _:
            assert_never(curve)


def _rules(rules: tuple[tuple[str, Rule], ...]) -> str:
    never = [_name(name) for name, rule in rules if isinstance(rule, Never)]
    parts = [f".never({', '.join(never)})"] if never else []
    for name, rule in rules:
        match rule:
            case Never():
                pass
            case UseDelay():
                parts.append(f".on({_name(name)}, {format_duration(rule.delay)})")
            case UsePolicy():
                parts.append(f".on({_name(name)}, {_head(rule.policy)})")
            case _:
                assert_never(rule)
    return "".join(parts)


def _jitter(jitter: Jitter) -> str:
    return jitter if isinstance(jitter, str) else repr(jitter)


def _count(value: int | None, unlimited: int | None) -> str:
    return "unlimited" if value == unlimited else str(value)


def _name(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)
