"""The strict gate for arguments and results: plain data in, JSON text out, one verdict for every engine.

Plain are None, True and False, whole numbers of 64 bits, finite floats, text, lists, tuples (read back as
lists) and dicts with text as keys. All else is refused with the path to it: what an engine would store
differently, or not at all, must not get that far.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import msgspec

from perdure.errors import BadPayload
from perdure.model.payload.decoded import Fault, check_decoded
from perdure.model.payload.json_text import Marks, refuse_double_keys, refuse_many_nodes
from perdure.model.payload.normaliser import (
    DEEPEST,
    HIGHEST_INTEGER,
    LOWEST_INTEGER,
    MOST_NODES,
    NotPlain,
    TooManyNodes,
    TooMuchText,
    make_plain,
    path_of,
    too_many_nodes,
)
from perdure.text.plural import plural

PAYLOAD_LIMIT = 256 * 1024
"""The default for the most bytes of JSON text that arguments or a result may have."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_SMALL = 4 * 1024
"""Text up to this many bytes takes no time to read, whatever is in it."""
_FEW = 20
_SHORT = 64
"""Text up to here is not added up: so much of it as the most nodes can hold is no danger to memory."""
_SUSPECT = re.compile(rb"[0-9]{18}|\\u0000")
"""What may stand for a number that is too large, or for a character that is refused."""


class _Arguments(msgspec.Struct, omit_defaults=True):
    """Arguments as `encode_args` writes them."""

    args: list[Any] = []
    kwargs: dict[str, Any] = {}


_simple_decoder = msgspec.json.Decoder(_Arguments)


def encode_args(args: tuple[Any, ...], kwargs: dict[str, Any], limit: int = PAYLOAD_LIMIT) -> bytes:
    """Arguments as JSON text: `{"args":[…],"kwargs":{…}}`, empty parts left out."""
    if args and not kwargs and _are_simple(args):
        try:
            data = _encoder.encode({"args": args})
        except UnicodeEncodeError:
            pass  # refused below, with the path to it
        else:
            if len(data) <= limit:
                return data
    parts: dict[str, Any] = {}
    if args:
        parts["args"] = args
    if kwargs:
        parts["kwargs"] = kwargs
    return _encode(parts, "", "The arguments take", limit, DEEPEST + 2) if parts else b"{}"


def _are_simple(args: tuple[Any, ...]) -> bool:
    """Whether these are a few numbers and short texts, as most are, with nothing in them that is refused."""
    if len(args) > _FEW:
        return False
    for value in args:
        kind = type(value)
        if kind is int:
            if not LOWEST_INTEGER <= value <= HIGHEST_INTEGER:
                return False
        elif kind is str:
            if len(value) > _SHORT or "\x00" in value:
                return False
        elif value is not None and kind is not bool:
            return False
    return True


def decode_args(data: bytes, limit: int = PAYLOAD_LIMIT) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that `encode_args` wrote."""
    size = len(data)
    if size <= limit and (size <= DEEPEST or _is_shallow(data)) and not _is_suspect(data):
        # Nearly all are so: what our own encoder wrote and has nothing in it that would need a closer look.
        try:
            simple = _simple_decoder.decode(data)
        except (msgspec.MsgspecError, ValueError):
            pass
        else:
            if _encoder.encode(simple) == data:
                return simple.args, simple.kwargs
    parts = _decode(data, "", "The arguments take", limit, DEEPEST + 2)
    if not isinstance(parts, dict) or not parts.keys() <= {"args", "kwargs"}:
        raise BadPayload("The arguments are not of the form", '{"args": […], "kwargs": {…}}.')
    args, kwargs = parts.get("args", []), parts.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise BadPayload("The arguments are not of the form", '{"args": […], "kwargs": {…}}.')
    return args, kwargs


def encode_result(value: Any, limit: int = PAYLOAD_LIMIT) -> bytes:
    """What a handler returned, as JSON text."""
    return _encode(value, "result", "The result takes", limit, DEEPEST)


def decode_result(data: bytes, limit: int = PAYLOAD_LIMIT) -> Any:
    """What `encode_result` wrote."""
    return _decode(data, "result", "The result takes", limit, DEEPEST)


def decode_body(data: bytes, limit: int) -> Any:
    """A request's body, by the same rules; a little deeper, so that arguments inside it keep their full depth."""
    return _decode(data, "", "The body takes", limit, DEEPEST + 6)


def _encode(value: Any, root: str, whose: str, limit: int, depth: int) -> bytes:
    try:
        try:
            data = _encode_plain(value, limit, depth)
        except (NotPlain, UnicodeEncodeError):
            # It is refused here with the path to the culprit, unless subclasses stand for plain data.
            data = _encode_plain(make_plain(value, root, depth, limit), limit, depth)
    except TooMuchText:
        raise BadPayload(f"{whose} more than {limit:,} bytes, the most that is stored.", _TOO_LARGE) from None
    except TooManyNodes:
        raise too_many_nodes(root) from None
    _check_size(data, whose, limit)
    return data


def _encode_plain(value: Any, limit: int, depth: int) -> bytes:
    _check(value, MOST_NODES, depth, [limit])
    return _encoder.encode(value)


def _decode(data: bytes, root: str, whose: str, limit: int, depth: int) -> Any:
    _check_size(data, whose, limit)
    try:
        refuse_many_nodes(data, depth)
        marks = Marks(data)
        # Python reads floats like 1e308 fifty times as fast as msgspec does.
        value = (_float_decoder if marks.has_extreme_float else _decoder).decode(data)
        check_decoded(value, MOST_NODES - 1, depth, looks_at_all=marks.has_long_number or marks.has_nul)
    except TooManyNodes:
        raise too_many_nodes(root) from None
    except Fault as fault:
        make_plain(fault.part, path_of(root, reversed(fault.steps)), fault.depth, limit)
        raise  # never: the part is refused in the line before
    except RecursionError:
        raise BadPayload(f"The JSON text is nested more than {DEEPEST} levels deep.") from None
    except (msgspec.MsgspecError, ValueError) as bad:
        raise BadPayload(f"This is not JSON text in UTF-8: {bad}.") from None
    refuse_double_keys(data, _encoder.encode(value))
    return value


def _read_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("Number out of range")
    return value


_float_decoder = msgspec.json.Decoder(float_hook=_read_float)


def _is_suspect(data: bytes) -> bool:
    """Whether the text needs the general way."""
    if len(data) <= _SMALL:
        return _SUSPECT.search(data) is not None
    marks = Marks(data)
    return marks.has_extreme_float or marks.has_long_number or marks.has_nul


def _is_shallow(data: bytes) -> bool:
    """Whether no value in this text, if it is JSON, can be too deep, or be of too many parts."""
    return len(data) <= MOST_NODES and data.count(b"[") + data.count(b"{") <= DEEPEST


def _check(value: Any, room: int, depth: int, text: list[int]) -> int:
    """Raise unless all of the value is plain, of exact types; gives how many nodes are left of `room`."""
    room -= 1
    if room < 0:
        raise TooManyNodes
    kind = type(value)
    if kind is str:
        _check_text(value, text)
    elif kind is int:
        if not LOWEST_INTEGER <= value <= HIGHEST_INTEGER:
            raise NotPlain
    elif kind is float:
        if not isfinite(value):
            raise NotPlain
    elif kind is dict:
        if depth <= 0:
            raise NotPlain
        for key, item in value.items():
            if type(key) is not str:
                raise NotPlain
            _check_text(key, text)
            room = _check(item, room, depth - 1, text)
    elif kind is list or kind is tuple:
        if depth <= 0:
            raise NotPlain
        for item in value:
            room = _check(item, room, depth - 1, text)
    elif kind is not bool and value is not None:
        raise NotPlain
    return room


def _check_text(value: str, text: list[int]) -> None:
    if len(value) > _SHORT:
        text[0] -= len(value)
        if text[0] < 0:
            raise TooMuchText
    if "\x00" in value:
        raise NotPlain


def _check_size(data: bytes, whose: str, limit: int) -> None:
    if len(data) > limit:
        raise BadPayload(f"{whose} {plural(len(data), 'byte')}, and at most {limit:,} are stored.", _TOO_LARGE)


_TOO_LARGE = "Store the data elsewhere and pass its key, or raise the limit in the settings."
