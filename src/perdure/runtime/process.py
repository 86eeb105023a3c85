"""Runs one worker as a process: an event loop, its signals, and a sure end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any

from perdure.errors import UsageError, WorkerFailed
from perdure.runtime.backoff import Backoff
from perdure.runtime.children.entry import stop_in_child
from perdure.runtime.liveness.own_process import EXIT_CODE
from perdure.runtime.liveness.watchdog import Watchdog
from perdure.runtime.membership import on_loop
from perdure.runtime.signals import one_stop, stopping_signals
from perdure.runtime.startup import in_daemon_thread, open_or_stop
from perdure.runtime.supervisor import stop_with_supervisor
from perdure.runtime.worker import Worker
from perdure.system.clock import SystemClock

_SWITCH = 0.001
"""After how many seconds a thread lets another run, where the engine's threads and the event loop need each other."""


def run_until_signalled(
    make_worker: Callable[[], Worker],
    *,
    open_store: Callable[[], object] = lambda: None,
    backoff: Backoff | None = None,
    serve: Callable[[Starting], object] = lambda starting: None,
) -> None:
    """Run a worker until SIGTERM or SIGINT; the first stops it gently, the second at once.

    `backoff` tells that the engine is away at the start and is waited for; without one, that is raised. `serve` makes
    what can be seen of the worker public, from before the engine is there.
    """
    stop_in_child()
    if threading.current_thread() is not threading.main_thread():
        raise UsageError(
            "A worker was started outside of the main thread, where it could not hear its signals.",
            "Start it in the main thread, or in a process of its own with `perdure worker`.",
        )
    starting: list[Starting] = []
    run_to_end(
        _run(starting, make_worker, open_store, backoff, serve),
        lambda: starting[0].watchdog if starting else None,
    )


def run_to_end(main: Coroutine[Any, Any, None], watchdog: Callable[[], Watchdog | None]) -> None:
    """Run an event loop for a process that belongs to a worker; `watchdog` gives the worker's, once there is one.

    The process ends with code 1 when the worker cannot go on, whatever keeps the loop or the interpreter from ending.
    """
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            try:
                runner.run(main)
            except BaseException as error:
                # Here, before the runner waits for all tasks of a loop that was left while the worker ran.
                if (dog := watchdog()) is not None:
                    dog.loop_ended(error)
                raise
    except WorkerFailed:
        raise SystemExit(EXIT_CODE) from None  # the log says why
    finally:
        if (dog := watchdog()) is not None:
            dog.process_left()


class Starting:
    """A worker as those who watch it see it, from before it is made."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self.stopping = asyncio.Event()
        self.watchdog: Watchdog | None = None

    def made(self, worker: Worker) -> None:
        """The worker is there, and has this process to itself."""
        self._worker = worker
        self.watchdog = getattr(worker, "watchdog", None)
        if self.watchdog is not None:
            self.watchdog.own_process()

    def heard(self) -> None:
        """A signal asks for the end; called wherever the main thread is."""
        if self.watchdog is not None:
            self.watchdog.signalled()

    def interrupted(self, frame: FrameType | None) -> None:
        """The watchdog breaks a handler off that blocks the loop."""
        if self.watchdog is not None:
            self.watchdog.interrupted(frame)

    def stop(self) -> None:
        """Stop the worker, or its start. Must be called on the event loop."""
        if self._worker is not None:
            self._worker.stop()
        self.stopping.set()

    @property
    def slots(self) -> tuple[int, int]:
        return (0, 0) if self._worker is None else self._worker.slots

    def problems(self) -> list[str]:
        """Why it cannot run jobs as it should."""
        return ["it waits for the store"] if self._worker is None else self._worker.problems()


async def _run(
    made: list[Starting],
    make_worker: Callable[[], Worker],
    open_store: Callable[[], object],
    backoff: Backoff | None,
    serve: Callable[[Starting], object],
) -> None:
    loop, starting = asyncio.get_running_loop(), Starting()
    made.append(starting)
    is_supervised = stop_with_supervisor(lambda: on_loop(loop, starting.stop))
    heard, stop = starting.heard, starting.stop
    if is_supervised:
        heard, stop = one_stop(heard, SystemClock()), one_stop(stop, SystemClock())
    with stopping_signals(loop, heard=heard, stop=stop, interrupted=starting.interrupted):
        serve(starting)
        if not await _open(open_store, backoff, starting.stopping):
            return
        worker = make_worker()
        starting.made(worker)
        if starting.stopping.is_set():
            worker.stop()
        with _switching() if worker.has_embedded_engine else contextlib.nullcontext(), _tidied():
            await worker.run(waits=backoff is not None)


async def _open(open_store: Callable[[], object], backoff: Backoff | None, stopping: asyncio.Event) -> bool:
    """Open the store; False when the worker was stopped before it was open."""
    return await open_or_stop(lambda: in_daemon_thread(open_store), backoff=backoff, stopping=stopping)


@contextlib.contextmanager
def _switching() -> Iterator[None]:
    """Have threads take turns more often.

    An engine in this process gives Python up for each statement, and gets it back from a busy loop only when that has
    had its time: with Python's own 5 ms, statement for statement, the two would hardly ever work at once.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def _tidied() -> Iterator[None]:
    """Have the garbage collector pass over what was there before the first job: code, which stays as long as it runs.

    To look through all of it takes many times as long as a small job waits for its start, and some job would wait.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed, else asyncio's own loop."""
    try:
        import uvloop  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
