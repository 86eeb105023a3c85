"""The start of a worker while its engine is away: it waits, says so once, and starts when the engine is there.

Only what can pass is waited for (`can_pass`): a wrong password or a missing schema is raised at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure.errors import EngineError
from perdure.runtime.backoff import Backoff
from perdure.runtime.outage import can_pass

T = TypeVar("T")

_IN_FLIGHT = 2.0
"""How many seconds a call that is under way may take to end once the start is stopped."""


async def succeed_or_stop(
    call: Callable[[], Awaitable[object]], *, backoff: Backoff | None, stopping: asyncio.Event, patience: float
) -> bool:
    """Make the call until it succeeds; False when the worker was stopped first.

    Without a `backoff` the first failure is raised. A call under way at the stop has `patience` seconds to end.
    """
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        while not stopping.is_set():
            calling = asyncio.ensure_future(call())
            try:
                await asyncio.wait([calling, stopped], return_when=asyncio.FIRST_COMPLETED)
                if not calling.done() and patience:
                    await asyncio.wait([calling], timeout=patience)
                if not calling.done():
                    return False
                calling.result()
            except EngineError as error:
                if backoff is None or not can_pass(error):
                    raise
                await asyncio.wait([stopped], timeout=backoff.failed(error))
                continue
            finally:
                calling.cancel()
            if backoff is not None:
                backoff.succeeded()
            return True
        return False
    finally:
        stopped.cancel()


async def open_or_stop(
    open_store: Callable[[], Awaitable[object]], *, backoff: Backoff | None, stopping: asyncio.Event
) -> bool:
    """Open the store, waiting for the engine; False when the worker was stopped first, at once."""
    return await succeed_or_stop(open_store, backoff=backoff, stopping=stopping, patience=0.0)


async def register_or_stop(
    register: Callable[[], Awaitable[object]], *, backoff: Backoff | None, stopping: asyncio.Event
) -> bool:
    """Register the worker, waiting for the engine; False when it was stopped first and is not registered."""
    return await succeed_or_stop(register, backoff=backoff, stopping=stopping, patience=_IN_FLIGHT)


def in_daemon_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """Make a blocking call beside the event loop.

    The program may end before the call does, which it cannot while a thread of the loop's own pool is busy: opening a
    connection to a host that does not answer takes long.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value, error = None, None
        try:
            value = call()
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    threading.Thread(target=run, name="perdure-start", daemon=True).start()
    return answer
