"""Makes plain data of what stands for it, and refuses the rest, naming the path: `args[0].items[3]`."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterable
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Any, NoReturn
from uuid import UUID

import msgspec

from perdure.errors import BadPayload
from perdure.text.shown import shown

DEEPEST = 64
MOST_NODES = 100_000
LOWEST_INTEGER = -(2**63)
HIGHEST_INTEGER = 2**63 - 1

_IDENTIFIER = re.compile(r"[^\W\d]\w{0,60}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_STEP = 60
"""How many characters of a key a path shows."""


class NotPlain(Exception):  # noqa: N818 - says what was found, inside the codec only
    """The value is not made of plain data of exact types only."""


class TooManyNodes(Exception):  # noqa: N818 - says what was found, inside the codec only
    """The value has more parts than are stored."""


class TooMuchText(Exception):  # noqa: N818 - says what was found, inside the codec only
    """The text in the value alone is longer than the limit."""


def make_plain(value: Any, root: str, depth: int, limit: int) -> Any:
    """A copy of the value made of plain data only; subclasses of plain types become those types.

    So a StrEnum becomes its text, an OrderedDict a dict, a named tuple a list. Raises BadPayload with the
    path to the first thing that is not plain and stands for nothing plain, TooMuchText beyond `limit` characters.
    """
    return _Copier(root, limit).copy(value, depth)


def too_many_nodes(path: str) -> BadPayload:
    """The error for a value with more parts than are stored."""
    where = f"{_where(path)}: there" if path else "There"
    return BadPayload(
        f"{where} are more than {MOST_NODES:,} values in all.", "Store the data elsewhere and pass its key."
    )


def path_of(root: str, steps: Iterable[str | int]) -> str:
    """The path to a part: `args[0].items[3]`."""
    path = root
    for step in steps:
        path = f"{path}[{step}]" if isinstance(step, int) else _step(path, step)
    return path


class _Copier:
    """Copies one value, counting its nodes and its text.

    Where it stands is a stack of steps, and a path is made of them only for an error: to make one for every part would
    take as long as the path is deep and its keys are long.
    """

    def __init__(self, root: str, limit: int) -> None:
        self._root = root
        self._steps: list[str | int] = []
        self._nodes = 0
        self._text_left = limit

    def copy(self, value: Any, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise too_many_nodes(self._path())
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int or isinstance(value, int):
            number = int.__int__(value)
            return number if LOWEST_INTEGER <= number <= HIGHEST_INTEGER else self._refuse_integer()
        if kind is str or isinstance(value, str):
            text = self._counted(value)
            return text if _is_sound(text) else self._refuse_text(text, self._path())
        if kind is float or isinstance(value, float):
            real = float.__float__(value)
            return real if isfinite(real) else self._refuse_float(real)
        if isinstance(value, dict | list | tuple):
            if depth <= 0:
                raise BadPayload(
                    f"{_where(self._path())}: nested more than {DEEPEST} levels deep.",
                    "A list or dict that contains itself is endless, too.",
                )
            return self._dict(value, depth - 1) if isinstance(value, dict) else self._list(value, depth - 1)
        raise BadPayload(
            f"{_where(self._path())}: values of type {type(value).__name__} cannot be stored.", _advice(value)
        )

    def _list(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        found: list[Any] = []
        self._steps.append(0)
        for place, item in enumerate(value):
            self._steps[-1] = place
            found.append(self.copy(item, depth))
        self._steps.pop()
        return found

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in dict.items(value):
            if not isinstance(key, str):
                raise BadPayload(
                    f"{_where(self._path())}: the key {shown(key)} is not text, and keys of JSON objects are.",
                    "Write it as str(key), and read it back in the handler.",
                )
            plain_key = self._counted(key)
            if not _is_sound(plain_key):
                self._refuse_text(plain_key, f"the key {shown(key)} of {self._path()}")
            if plain_key in found:
                raise BadPayload(f"{_where(self._path())}: the key {shown(key)} is there twice.")
            self._steps.append(plain_key)
            found[plain_key] = self.copy(item, depth)
            self._steps.pop()
        return found

    def _counted(self, value: str) -> str:
        text = str.__str__(value)
        self._text_left -= len(text)
        if self._text_left < 0:
            raise TooMuchText
        return text

    def _path(self) -> str:
        return path_of(self._root, self._steps)

    def _refuse_text(self, text: str, path: str) -> NoReturn:
        if "\x00" in text:
            raise BadPayload(f"{_where(path)}: the text has a NUL character, which not every engine can store.")
        raise BadPayload(
            f"{_where(path)}: the text has half a surrogate pair, which is no valid Unicode.",
            'Bytes that are no text are best passed as base64; text.encode("utf-8", "replace") mends it.',
        )

    def _refuse_integer(self) -> NoReturn:
        raise BadPayload(
            f"{_where(self._path())}: the number does not fit in 64 bits (−2^63 to 2^63 − 1).",
            "Pass it as str(number).",
        )

    def _refuse_float(self, value: float) -> NoReturn:
        raise BadPayload(f"{_where(self._path())}: {value} is not a number that JSON has.", "Pass None instead.")


def _where(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"


def _step(path: str, key: str) -> str:
    if not path:
        return key if len(key) <= _LONGEST_STEP else f"{key[:_LONGEST_STEP]}…"
    return f"{path}.{key}" if _IDENTIFIER.fullmatch(key) else f"{path}[{shown(key)}]"


def _is_sound(text: str) -> bool:
    return "\x00" not in text and (text.isascii() or not _SURROGATE.search(text))


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
