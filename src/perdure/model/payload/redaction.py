"""Leaves secrets out of what is shown: values by the names of their keys, also where the pairs stand in a text.

A rule is a name such as `card`, which matches keys that have its words side by side (`card_number`, `cardNumber`,
`X-Card`), or a name with `*` such as `*password*`, which is matched with all that is no letter and no digit left out.
Letter case makes no difference. `default` stands for the rules below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

REDACTED = "[redacted]"
"""What is shown instead of a secret."""

DEFAULT_RULES = (
    "*password*",
    "*passwd*",
    "*passphrase*",
    "pwd",
    "*secret*",
    "*token",
    "token",
    "*apikey*",
    "*accesskey*",
    "*privatekey*",
    "*signingkey*",
    "*encryptionkey*",
    "*authorization*",
    "auth",
    "bearer",
    "*credential*",
    "*cookie*",
    "*sessionid*",
    "jwt",
    "otp",
    "pin",
    "*creditcard*",
    "card",
    "cvv",
    "cvc",
    "ssn",
)

_LONGEST_KEY = 300
_MOST_KNOWN = 10_000
"""How many keys are remembered with whether a rule matches them."""
_BORDERS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|[\W_]+")
_NAMES = ("name", "key", "header", "field")
_TEXT = r'"(?:[^"\\]|\\.)*"?' + r"|'(?:[^'\\]|\\.)*'?"
_QUOTED = re.compile(rf"""(["'])([^"'\\\n]{{1,100}})\1(\s{{0,4}}[:=]\s{{0,4}})({_TEXT}|[\[{{][\s\S]*|[^\s,}}\]"']+)""")
"""A pair as JSON and Python write it. Of an object or a list everything after its beginning is left out."""
_ASSIGNED = re.compile(rf"(?<![\w-])([\w.-]{{1,100}})(=)({_TEXT}|[^\s&;,\"'<>]+)")
"""A pair as addresses, forms and commands have it."""
_HEADER = re.compile(r"(?<![\w-])([\w-]{1,100})([ \t]{0,2}:[ \t]{1,4})(\S[^\r\n]*)")
"""A pair as the lines of HTTP headers and logs have it."""
_SCHEME = re.compile(r"\b(bearer|basic) +[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_USER = re.compile(r"://[^\s/@]+@")


class Redactor:
    """The rules of one app, applied to values and texts."""

    def __init__(self, rules: Iterable[str] | None = ("default",)) -> None:
        given = [rule for name in rules or () for rule in (DEFAULT_RULES if name == "default" else (name,))]
        plain = {_plain(rule, "*"): None for rule in given}
        self._names = frozenset(rule for rule in plain if rule and "*" not in rule)
        globs = [rule for rule in plain if "*" in rule and rule.strip("*")]
        self._glob = re.compile("|".join(map(_as_pattern, globs)), re.DOTALL) if globs else None
        parts = sorted(part for rule in plain for part in rule.split("*") if part)
        # Finds the texts that are worth a closer look: most have no such word at all.
        spelt = "|".join(r"[\W_]?".join(map(re.escape, part)) for part in parts)
        self._hint = re.compile(spelt, re.IGNORECASE) if parts else None
        self._known: dict[str, bool] = {}

    def hides(self, key: str) -> bool:
        """Whether the values of this key are secrets."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._matches(key[:_LONGEST_KEY])
        return found

    def value(self, value: Any) -> Any:
        """The value with its secrets left out; what has none is given as it is."""
        if self._hint is None:
            return value
        try:
            return self._value(value)
        except RecursionError:
            return REDACTED

    def text(self, text: str) -> str:
        """The text with the values of secret names, credentials in URLs and bearer tokens left out."""
        if self._hint is None:
            return text
        if "://" in text:
            text = _USER.sub("://…@", text)
        if self._hint.search(text) is None and _SCHEME.search(text) is None:
            return text
        if text[:1] in ("{", "["):
            try:
                return json.dumps(self._value(json.loads(text)), ensure_ascii=False)
            except (ValueError, RecursionError):
                pass  # a part of JSON text, or none
        text = _QUOTED.sub(self._quoted, text)
        text = _ASSIGNED.sub(self._pair, text)
        text = _HEADER.sub(self._pair, text)
        return _SCHEME.sub(rf"\1 {REDACTED}", text)

    def _value(self, value: Any) -> Any:
        if type(value) is dict:
            return self._dict(value)
        if type(value) is list:
            if len(value) == 2 and isinstance(value[0], str) and self.hides(value[0]):
                return [value[0], _hidden(value[1])]
            return [self._value(item) for item in value]
        return self.text(value) if type(value) is str else value

    def _dict(self, value: dict[str, Any]) -> dict[str, Any]:
        found = {key: _hidden(item) if self.hides(key) else self._value(item) for key, item in value.items()}
        if "value" in found and any(isinstance(value.get(name), str) and self.hides(value[name]) for name in _NAMES):
            found["value"] = _hidden(value["value"])
        return found

    def _matches(self, key: str) -> bool:
        if self._glob is not None and self._glob.fullmatch(_plain(key)):
            return True
        words = [word.casefold() for word in _BORDERS.split(key) if word]
        return any(
            "".join(words[first:last]) in self._names
            for first in range(len(words))
            for last in range(first + 1, min(first + 5, len(words) + 1))
        )

    def _quoted(self, found: re.Match[str]) -> str:
        if not self.hides(found[2]):
            return found[0]
        return f"{found[1]}{found[2]}{found[1]}{found[3]}{found[1]}{REDACTED}{found[1]}"

    def _pair(self, found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}{REDACTED}" if self.hides(found[1]) else found[0]


def _hidden(value: Any) -> Any:
    """What is shown of a secret value; that there is none, or only a yes or no, is no secret."""
    return value if value is None or value == "" or isinstance(value, bool) else REDACTED


def _plain(name: str, kept: str = "") -> str:
    return "".join(character for character in name.casefold() if character.isalnum() or character in kept)


def _as_pattern(rule: str) -> str:
    return ".*".join(map(re.escape, re.sub(r"\*+", "*", rule).split("*")))
