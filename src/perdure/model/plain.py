"""Makes plain data of what stands for it, and refuses the rest, naming the path: `args[0].items[3]`."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec

from perdure.errors import BadPayload
from perdure.model.shown import shown

DEEPEST = 64
MOST_NODES = 100_000
LOWEST_INTEGER = -(2**63)
HIGHEST_INTEGER = 2**63 - 1

_IDENTIFIER = re.compile(r"[^\W\d]\w{0,60}")
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotPlain(Exception):  # noqa: N818 - says what was found, inside the codec only
    """The value is not made of plain data of exact types only."""


class TooMuchText(Exception):  # noqa: N818 - says what was found, inside the codec only
    """The text in the value alone is longer than the limit."""


def make_plain(value: Any, root: str, depth: int, limit: int) -> Any:
    """A copy of the value made of plain data only; subclasses of plain types become those types.

    So a StrEnum becomes its text, an OrderedDict a dict, a named tuple a list. Raises BadPayload with the
    path to the first thing that is not plain and stands for nothing plain, TooMuchText beyond `limit` characters.
    """
    return _Copier(limit).copy(value, root, depth)


class _Copier:
    """Copies one value, counting its nodes and its text."""

    def __init__(self, limit: int) -> None:
        self._nodes = 0
        self._text_left = limit

    def copy(self, value: Any, path: str, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise BadPayload(
                f"{_where(path)}: there are more than {MOST_NODES:,} values in all.",
                "Store the data elsewhere and pass its key.",
            )
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, int):
            return _integer(int.__int__(value), path)
        if isinstance(value, float):
            return _float(float.__float__(value), path)
        if isinstance(value, dict | list | tuple):
            if depth <= 0:
                raise BadPayload(
                    f"{_where(path)}: nested more than {DEEPEST} levels deep.",
                    "A list or dict that contains itself is endless, too.",
                )
            return self._container(value, path, depth - 1)
        raise BadPayload(f"{_where(path)}: values of type {type(value).__name__} cannot be stored.", _advice(value))

    def _container(self, value: dict[Any, Any] | list[Any] | tuple[Any, ...], path: str, depth: int) -> Any:
        if not isinstance(value, dict):
            return [self.copy(item, f"{path}[{place}]", depth) for place, item in enumerate(value)]
        found: dict[str, Any] = {}
        for key, item in dict.items(value):
            if not isinstance(key, str):
                raise BadPayload(
                    f"{_where(path)}: the key {shown(key)} is not text, and keys of JSON objects are.",
                    "Write it as str(key), and read it back in the handler.",
                )
            plain_key = self._text(key, f"the key {shown(key)} of {path}")
            if plain_key in found:
                raise BadPayload(f"{_where(path)}: the key {shown(key)} is there twice.")
            found[plain_key] = self.copy(item, _step(path, plain_key), depth)
        return found

    def _text(self, value: str, path: str) -> str:
        text = str.__str__(value)
        self._text_left -= len(text)
        if self._text_left < 0:
            raise TooMuchText
        return _checked_text(text, path)


def _where(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"


def _step(path: str, key: str) -> str:
    if not path:
        return key
    return f"{path}.{key}" if _IDENTIFIER.fullmatch(key) else f"{path}[{shown(key)}]"


def _checked_text(value: str, path: str) -> str:
    if "\x00" in value:
        raise BadPayload(f"{_where(path)}: the text has a NUL character, which not every engine can store.")
    if _SURROGATE.search(value):
        raise BadPayload(
            f"{_where(path)}: the text has half a surrogate pair, which is no valid Unicode.",
            'Bytes that are no text are best passed as base64; text.encode("utf-8", "replace") mends it.',
        )
    return value


def _integer(value: int, path: str) -> int:
    if not LOWEST_INTEGER <= value <= HIGHEST_INTEGER:
        raise BadPayload(
            f"{_where(path)}: the number does not fit in 64 bits (−2^63 to 2^63 − 1).",
            "Pass it as str(number).",
        )
    return value


def _float(value: float, path: str) -> float:
    if not isfinite(value):
        raise BadPayload(f"{_where(path)}: {value} is not a number that JSON has.", "Pass None instead.")
    return value


def _advice(value: object) -> str:
    for kinds, advice in _ADVICE:
        if isinstance(value, kinds):
            return advice
    if is_dataclass(value):
        return "Pass dataclasses.asdict(…) of it."
    return "Pass plain data, such as the thing's id, and load the thing in the handler."


_ADVICE: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((bytes, bytearray, memoryview), "Pass text: .decode(), or base64 where it is no text."),
    ((date, time), "Pass .isoformat() of it, and read it back in the handler."),
    (timedelta, "Pass .total_seconds() of it."),
    ((UUID, Decimal, PurePath), "Pass str(…) of it."),
    ((set, frozenset), "Pass a list: sorted(…)."),
    (Enum, "Pass its .value."),
    (Coroutine, "It was never awaited: pass what it gives."),
    (msgspec.Struct, "Pass msgspec.to_builtins(…) of it."),
)
