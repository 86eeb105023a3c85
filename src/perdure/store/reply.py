"""A store's answer to a verb: await it on an event loop, or block for it with `wait()` in any thread.

One verb is written once per engine and serves synchronous and asynchronous callers alike. Nothing happens before the
reply is awaited or waited for, and each reply is used once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Reply(Protocol[T_co]):
    """The answer that a verb will give."""

    def wait(self) -> T_co:
        """Do it and block until it is done; not for use on an event loop."""
        ...

    def __await__(self) -> Generator[Any, None, T_co]:
        """Do it without blocking the event loop."""
        ...
