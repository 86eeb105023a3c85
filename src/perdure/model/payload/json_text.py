"""What can be told about JSON text by searching in its bytes, much faster than by looking at decoded values.

Each search is linear, and takes about a millisecond for a megabyte. A pattern of `re` would take up to fifty.
"""

from __future__ import annotations

import json
import re
from typing import Any

from perdure.errors import BadPayload
from perdure.model.payload.normaliser import MOST_NODES, TooManyNodes
from perdure.text.shown import shown

_DIGITS_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_SIGNS = b"+-"
_LONG_NUMBER = b"0" * 18
"""18 digits in a row: what may be a number that does not fit in 64 bits."""
_EXTREME_FLOAT = b"0e000"
"""An exponent of three digits."""
_ESCAPED_COLON = re.compile(rb"(?<!\\)(?:\\\\)*\\u003[aA]")
"""A colon inside of a text, written as an escape: behind an odd number of backslashes."""
_LONG = 64 * 1024
"""In text with more bytes than this a double key is not named: to find it takes longer than to read the text."""


class Marks:
    """What a JSON text may have in it; it may also be inside of a text, where it means nothing."""

    __slots__ = ("has_extreme_float", "has_long_number", "has_nul")

    def __init__(self, data: bytes) -> None:
        alike = data.translate(_DIGITS_ALIKE, _SIGNS)
        self.has_long_number = _LONG_NUMBER in alike
        self.has_extreme_float = _EXTREME_FLOAT in alike
        self.has_nul = b"\\u0000" in data


def refuse_many_nodes(data: bytes, depth: int) -> None:
    """Raise before the parts of a text are made, if they are more than are stored.

    TooManyNodes, or RecursionError for text with so many brackets that they are nested deeper than `depth`.
    """
    if data.count(b",") + data.count(b"[") + data.count(b"{") < MOST_NODES:
        return
    # What stands in quotes is taken out, escaped quotes first.
    bare = data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
    outside = b'"'.join(bare[::2]).translate(None, b" \t\r\n")
    commas, opened = outside.count(b","), outside.count(b"[") + outside.count(b"{")
    # An array or object of n + 1 parts has n commas, and an empty one has none.
    if 1 + commas + opened - outside.count(b"[]") - outside.count(b"{}") <= MOST_NODES:
        return
    # Without enough commas for so many side by side, some of them are inside of each other.
    raise RecursionError if opened > depth * (commas + 1) else TooManyNodes


def refuse_double_keys(data: bytes, encoded: bytes) -> None:
    """Raise BadPayload if an object in the text has a key twice, which decoders drop without a word.

    `encoded` is what msgspec writes for the value that `data` was decoded to.
    """
    # Text that our own encoder wrote can have no key twice.
    if encoded == data:
        return
    # Each pair has one colon, and colons inside of texts are kept. A key that was dropped took its colon along.
    colons = data.count(b":")
    if b"\\u003" in data:
        colons += len(_ESCAPED_COLON.findall(data))
    if colons == encoded.count(b":"):
        return
    try:
        if len(data) <= _LONG:
            json.loads(data.decode(), object_pairs_hook=_refuse)
    except RecursionError:
        pass  # the key is not named
    raise BadPayload("The JSON text has a key twice in one object.")


def _refuse(pairs: list[tuple[str, Any]]) -> None:
    """Called for each object from the inside out; its value is not needed."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise BadPayload(f"The JSON text has the key {shown(key)} twice in one object.")
        seen.add(key)
