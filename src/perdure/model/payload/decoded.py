"""Checks values that were decoded from JSON text, and says where the first one is that cannot be stored."""

from __future__ import annotations

from typing import Any

from perdure.model.payload.normaliser import HIGHEST_INTEGER, LOWEST_INTEGER, TooManyNodes


class Fault(Exception):  # noqa: N818 - says what was found, inside the codec only
    """A part of a decoded value that cannot be stored, and the steps to it, the last one first."""

    def __init__(self, part: Any, depth: int) -> None:
        self.part = part
        self.depth = depth
        self.steps: list[str | int] = []


def check_decoded(value: Any, room: int, depth: int, *, looks_at_all: bool) -> int:
    """Raise Fault for what is nested too deep, TooManyNodes beyond `room`; gives how much room is left.

    With `looks_at_all` also Fault for numbers that do not fit in 64 bits and for text with a NUL character. Where the
    JSON text has neither, numbers and texts are not looked at one by one.
    """
    if type(value) is list:
        room = _enter(value, room, depth)
        for place, item in enumerate(value):
            if type(item) is list or type(item) is dict:
                room = _go_on(item, place, room, depth - 1, looks_at_all)
            elif looks_at_all and _is_unfit(item):
                raise _fault(item, place)
    elif type(value) is dict:
        room = _enter(value, room, depth)
        for key, item in value.items():
            if looks_at_all and "\x00" in key:
                raise Fault({key: None}, 1)
            if type(item) is list or type(item) is dict:
                room = _go_on(item, key, room, depth - 1, looks_at_all)
            elif looks_at_all and _is_unfit(item):
                raise _fault(item, key)
    elif looks_at_all and _is_unfit(value):
        raise Fault(value, 0)
    return room


def _enter(value: list[Any] | dict[str, Any], room: int, depth: int) -> int:
    if depth <= 0:
        raise Fault(value, 0)
    if len(value) > room:
        raise TooManyNodes
    return room - len(value)


def _go_on(item: Any, step: str | int, room: int, depth: int, looks_at_all: bool) -> int:
    try:
        return check_decoded(item, room, depth, looks_at_all=looks_at_all)
    except Fault as fault:
        fault.steps.append(step)
        raise


def _is_unfit(item: Any) -> bool:
    if type(item) is int:
        return not LOWEST_INTEGER <= item <= HIGHEST_INTEGER
    return type(item) is str and "\x00" in item


def _fault(item: Any, step: str | int) -> Fault:
    fault = Fault(item, 0)
    fault.steps.append(step)
    return fault
