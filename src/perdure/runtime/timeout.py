"""A time limit for a coroutine that costs next to nothing until the coroutine waits for something.

Most short handlers never wait. A limit can only break off what waits, so a timer is set when that happens first. One
that blocks the event loop past its limit and then returns is out of time as well.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class OutOfTime(Exception):  # noqa: N818 - an outcome of the handler, not an error here
    """The coroutine was broken off, or went on and ended too late; its cause is what broke it off."""


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What the coroutine gives; raises OutOfTime when it waits longer than so many seconds from now."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        if loop.time() > until:
            raise OutOfTime from None
        value: T = end.value
        return value
    limit = asyncio.timeout_at(until)
    try:
        async with limit:
            value = await _go_on(work, waits_for)
    except TimeoutError as error:
        if limit.expired():
            raise OutOfTime from error.__cause__
        raise
    if limit.expired() or loop.time() > until:
        # It swallowed the cancellation, or blocked the loop so that it could not be cancelled.
        raise OutOfTime
    return value


@types.coroutine
def _go_on(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """The rest of a coroutine that has begun and waits for something."""
    while True:
        try:
            yield waits_for
        except BaseException as thrown:
            try:
                waits_for = work.throw(thrown)
            except StopIteration as end:
                value: T = end.value
                return value
        else:
            # From here on the interpreter itself passes on what comes and goes.
            return (yield from work.__await__())
