"""Parses the text of a retry policy: one pass, nothing evaluated, and errors that point at the place.

policy := head rule*
head   := preset | preset(option=value, …) | constructor(value, option=value, …) | never_retry()
rule   := .never(error, …) | .on(error, …, delay or head)

A misspelt name, be it of a preset, a constructor, an option, a rule or a value, is answered with the nearest known one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from perdure.errors import BadPolicy
from perdure.model.policy.option import near_exceptions
from perdure.model.policy.presets import NAMED, PRESETS
from perdure.model.policy.retry import Retry
from perdure.model.policy.text import LONGEST_TEXT, PLAIN_NAME
from perdure.text.shown import shown
from perdure.text.suggestion import did_you_mean

_HEAD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_OPTION = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)\s*=")
_VALUE = re.compile(r"[^\s,()\[\]=\"]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_DELAY = re.compile(r"[0-9][^\s,()\[\]=\"]*", re.ASCII)
_SPACE = re.compile(r"\s*")

_CONSTRUCTORS: dict[str, tuple[Callable[..., Retry], str]] = {
    "exponential": (Retry.exponential, "base"),
    "fixed": (Retry.fixed, "every"),
    "linear": (Retry.linear, "step"),
    "delays": (Retry.delays, "waits"),
}


def parse_policy(text: str) -> Retry:
    """The policy that a text describes."""
    if not isinstance(text, str):
        raise BadPolicy(f"The text of a policy is a string, not {shown(text)}.")
    if len(text.encode("utf-8", "replace")) > LONGEST_TEXT:
        raise BadPolicy(f"The policy's text is longer than {LONGEST_TEXT:,} bytes.")
    return _Parser(text).policy()


def parse_stored_policy(text: str) -> Retry:
    """The policy that a text in the store describes; options that only a newer version knows are left out of it."""
    return _Parser(text, skips_unknown=True).policy()


class _Parser:
    """A cursor over the text; each method reads one part and leaves the cursor behind it."""

    def __init__(self, text: str, *, skips_unknown: bool = False) -> None:
        self._text = text
        self._skips_unknown = skips_unknown
        self._at = 0
        self._skip_space()

    def policy(self) -> Retry:
        policy = self._head()
        while self._at < len(self._text):
            self._expect(".", "`.never(…)`, `.on(…)` or the end")
            start = self._at
            word = self._match(_HEAD, "`never` or `on`")
            if word not in _RULES:
                self._fail("`never` or `on`", start, did_you_mean(word, _RULES))
            self._expect("(", "`(`")
            policy = self._never(policy) if word == "never" else self._on(policy)
        return policy

    def _head(self) -> Retry:
        start = self._at
        name = self._match(_HEAD, "a preset's name, or a constructor such as `exponential(2s)`")
        if name not in _HEADS:
            self._fail_unknown(name, start)
        if not self._accept("("):
            return self._named(name)
        if name == "never_retry":
            self._expect(")", "`)`, as never_retry takes nothing")
            return Retry.never_retry()
        build, first = _CONSTRUCTORS.get(name, (None, None))
        arguments = self._arguments(first, has_factor=name == "exponential")
        if build is not None and first in arguments:
            values = {key: value for key, value in arguments.items() if key != first}
            return self._built(start, lambda: build(arguments[first], **values))
        # Without the delay that a constructor needs, `fixed(…)` and `exponential(…)` mean the presets.
        if name not in NAMED or "factor" in arguments:
            self._fail(f"{name}'s {first}, such as `{name}({'[1s, 5s]' if name == 'delays' else '2s'})`", start)
        return self._built(start, lambda: _changed(name, arguments))

    def _named(self, name: str) -> Retry:
        if name == "never_retry":
            return Retry.never_retry()
        if name not in NAMED:
            self._fail(f"`(` after {name}", self._at)
        return NAMED[name].policy

    def _arguments(self, first: str | None, *, has_factor: bool) -> dict[str, Any]:
        """The values up to the closing bracket, by name; a first one may do without its name."""
        known = [*([first] if first else []), *(["factor"] if has_factor else []), *_OPTIONS]
        found: dict[str, Any] = {}
        while not self._accept(")"):
            if found:
                self._expect(",", "`,` or `)`")
            start = self._at
            option = _OPTION.match(self._text, self._at)
            if option is None:
                if first is None or found:
                    self._fail("an option such as `max_attempts=5`", start)
                found[first] = self._value(first)
                continue
            name = option[1]
            is_known = name in known
            if name in found or not (is_known or self._skips_unknown):
                hint = None if is_known else did_you_mean(name, known)
                self._fail(f"one of the options {', '.join(known)}, each once", start, hint)
            self._at = option.end()
            self._skip_space()
            if is_known:
                found[name] = self._value(name)
            else:
                self._match(_VALUE, f"a value for {name}")
        return found

    def _value(self, name: str) -> Any:
        if name == "waits":
            return self._waits()
        if name in ("base", "every", "step"):
            return self._match(_DELAY, "a delay such as `2s`")
        start = self._at
        text = self._match(_VALUE, f"a value for {name}")
        try:
            return _number(text) if name == "factor" else _OPTIONS[name](text)
        except ValueError:
            self._fail(f"a value that {name} can have", start, did_you_mean(text, _WORDS.get(name, ())))

    def _waits(self) -> list[str]:
        self._expect("[", "a list of delays such as `[1s, 5s]`")
        waits = [self._match(_DELAY, "a delay such as `2s`")]
        while not self._accept("]"):
            self._expect(",", "`,` or `]`")
            waits.append(self._match(_DELAY, "a delay such as `2s`"))
        return waits

    def _never(self, policy: Retry) -> Retry:
        start = self._at
        names = [self._error()]
        while not self._accept(")"):
            self._expect(",", "`,` or `)`")
            names.append(self._error())
        return self._built(start, lambda: policy.never(*names))

    def _on(self, policy: Retry) -> Retry:
        start = self._at
        names = [self._error()]
        while True:
            self._expect(",", "`,` and then a delay or a policy")
            if _DELAY.match(self._text, self._at):
                what: Retry | str = self._match(_DELAY, "a delay")
                break
            if self._is_policy_next():
                what = self._head()
                break
            names.append(self._error())
        self._expect(")", "`)`")
        return self._built(start, lambda: policy.on(*names, what))

    def _is_policy_next(self) -> bool:
        """Whether a policy follows and not one more name: names are never followed by `(`, nor last."""
        if self._text.startswith('"', self._at):
            return False
        word = _VALUE.match(self._text, self._at)
        end = word.end() if word else self._at
        return self._text[end:].lstrip()[:1] != ","

    def _error(self) -> str:
        start = self._at
        name = self._error_name()
        near = [] if self._skips_unknown else near_exceptions(name)
        if near:
            raise BadPolicy(
                f"{self._place(start)}: no built-in exception is called {shown(name)}.",
                f"Did you mean {near[0]}? An exception of your own is written with its module: myapp.errors.{name}.",
            )
        return name

    def _error_name(self) -> str:
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is None:
            return self._match(PLAIN_NAME, "the name of an error, such as `TimeoutError`")
        start = self._at
        self._at = quoted.end()
        self._skip_space()
        try:
            return str(json.loads(quoted[0]))
        except ValueError:
            self._fail("a name quoted as JSON quotes it", start)

    def _match(self, pattern: re.Pattern[str], expected: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            self._fail(expected, self._at)
        self._at = found.end()
        self._skip_space()
        return found[0]

    def _expect(self, character: str, expected: str) -> None:
        if not self._accept(character):
            self._fail(expected, self._at)

    def _accept(self, character: str) -> bool:
        if not self._text.startswith(character, self._at):
            return False
        self._at += len(character)
        self._skip_space()
        return True

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _built(self, start: int, build: Callable[[], Retry]) -> Retry:
        try:
            return build()
        except BadPolicy as bad:
            raise BadPolicy(f"{self._place(start)}: {bad.message}", bad.hint) from bad

    def _fail_unknown(self, name: str, start: int) -> NoReturn:
        hint = did_you_mean(name, _HEADS) or f"The presets are {', '.join(PRESETS)}."
        raise BadPolicy(f"{self._place(start)}: there is no preset or constructor {shown(name)}.", hint)

    def _fail(self, expected: str, start: int, hint: str | None = None) -> NoReturn:
        rest = self._text[start : start + 20]
        found = repr(rest) if rest else "the end"
        raise BadPolicy(f"{self._place(start)}: expected {expected}, found {found}.", hint)

    def _place(self, start: int) -> str:
        return f"The policy {shown(self._text)} cannot be read at character {start + 1}"


def _changed(name: str, arguments: dict[str, Any]) -> Retry:
    """The preset with options of its own."""
    preset = NAMED[name].policy
    changed = preset.replace(**arguments)
    if preset.max_attempts == 1 < changed.max_attempts:
        raise BadPolicy(
            f"{name} means one attempt, and cannot have {changed.max_attempts:,}.",
            f"To retry at once, write immediate(max_attempts={changed.max_attempts}).",
        )
    return changed


def _number(text: str) -> float:
    return float(text) if any(mark in text for mark in ".eE") else int(text)


def _jitter(text: str) -> float | str:
    return _number(text) if text[:1].isdigit() else text


def _count(text: str) -> int | str:
    return text if text == "unlimited" else int(text)


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


_OPTIONS: dict[str, Callable[[str], Any]] = {
    "cap": str,
    "jitter": _jitter,
    "max_attempts": _count,
    "max_retries": _count,
    "within": str,
    "max_recoveries": _count,
    "jitter_over_cap": _truth,
    "caps_jobs": _truth,
}

_RULES = ("never", "on")
_HEADS = (*NAMED, *(name for name in _CONSTRUCTORS if name not in NAMED), "never_retry")
_WORDS = {
    "max_attempts": ("unlimited",),
    "max_retries": ("unlimited",),
    "max_recoveries": ("unlimited",),
    "jitter_over_cap": ("true", "false"),
    "caps_jobs": ("true", "false"),
}
"""The values of options that are words; those of jitter are told by `read_jitter`."""
