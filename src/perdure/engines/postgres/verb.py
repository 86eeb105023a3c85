"""A verb as a script: which statements it sends, one after the other, and what it makes of their rows.

A script is a generator that yields steps and is sent the rows of each; it knows no connection. The same script is
played by a thread, by an event loop, and on a caller's own connection, whatever driver that belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

import msgspec

Row = tuple[Any, ...]
T = TypeVar("T")


class Step(msgspec.Struct, frozen=True):
    """One statement by name, and its parameters by name; `now` is filled in by whoever plays the script."""

    statement: str
    values: dict[str, Any] = {}


Script = Generator[Step, list[Row], T]


class Verb(Generic[T]):
    """One use of a verb: a script that can be played again when it came to nothing."""

    __slots__ = (
        "is_repeatable",
        "is_transaction",
        "may_collide",
        "plan",
        "script",
        "when_committed",
        "when_in_doubt",
    )

    def __init__(
        self,
        script: Callable[[], Script[T]],
        *,
        is_transaction: bool = False,
        is_repeatable: bool = False,
        may_collide: bool = False,
        plan: str | None = None,
        when_in_doubt: Callable[[], None] | None = None,
        when_committed: Callable[[], None] | None = None,
    ) -> None:
        self.script = script
        self.is_transaction = is_transaction
        """Whether its steps must share a transaction; others are one statement, or do not mind."""
        self.is_repeatable = is_repeatable
        """Whether it may be done again when nobody knows whether it was done."""
        self.may_collide = may_collide
        """Whether a unique key that others take meanwhile is no fault, but a reason to look again."""
        self.plan = plan
        """Its main statement, if its plans are good for all values and sizes, and used so often that they are kept."""
        self.when_in_doubt = when_in_doubt
        """Called when nobody knows whether it was done, before it is tried again or given up."""
        self.when_committed = when_committed
        """Called when its transaction is committed."""


AnyVerb = Verb[Any]
