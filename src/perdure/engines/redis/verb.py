"""A verb as a sequence of calls: which scripts it runs, one after the other, and what it makes of their answers.

It is a generator that yields calls and is sent the answer to each; it knows no connection. A thread and an event loop
play the same generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

Argument = bytes | str | int


class Waiting:
    """What a call waits for in the server before it is done: a bell, or the end of patience; used on one event loop."""

    def __init__(self, bells: Sequence[str], patience: float) -> None:
        self.bells = bells
        self.patience = patience
        self.is_ended = False
        """Whether it is to wait no longer."""
        self.is_over = False
        """Whether it has been answered."""
        self.refusal: Exception | None = None
        """What the server said when it was asked to wait and would not."""
        self.break_off: Callable[[], None] | None = None
        """Ends the wait that has begun."""

    def end(self) -> None:
        self.is_ended = True
        if self.break_off is not None and not self.is_over:
            self.break_off()


class Call(msgspec.Struct, frozen=True):
    """One run of a script, by name, with its own arguments; time and sender are filled in by whoever plays it."""

    script: str
    arguments: Sequence[Argument] = ()
    is_write: bool = False
    is_repeatable: bool = True
    """Whether it may be done again when nobody knows whether it was done."""
    when_in_doubt: Callable[[], None] | None = None
    """Called when nobody knows whether it was done, before it is tried again or given up."""
    waiting: Waiting | None = None
    """What it waits for first, where the connection can do so: on an event loop, and not in a Cluster."""


Verb = Generator[Call, Any, T]


def optional(value: bytes | str | int | None) -> bytes:
    """An argument that may be absent, as fragments/given.lua reads it."""
    if value is None:
        return b""
    return b"=" + (value if isinstance(value, bytes) else str(value).encode())
