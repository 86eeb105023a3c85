"""Runs one worker as a process: an event loop, its signals, and a sure end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable

from perdure.errors import UsageError
from perdure.runtime.membership import on_loop
from perdure.runtime.supervisor import stop_with_supervisor
from perdure.runtime.worker import Worker


def run_until_signalled(make_worker: Callable[[], Worker]) -> None:
    """Run a worker until SIGTERM or SIGINT; the first stops it gently, the second at once."""
    if threading.current_thread() is not threading.main_thread():
        raise UsageError(
            "A worker was started outside of the main thread, where it could not hear its signals.",
            "Start it in the main thread, or in a process of its own with `perdure worker`.",
        )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_run(make_worker))


async def _run(make_worker: Callable[[], Worker]) -> None:
    worker = make_worker()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    stop_with_supervisor(lambda: on_loop(loop, worker.stop))
    try:
        await worker.run()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed, else asyncio's own loop."""
    try:
        import uvloop  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
