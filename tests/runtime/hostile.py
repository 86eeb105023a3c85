"""The app of the hostile handlers: each behaviour is something that a handler should not do, in all three kinds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from tests.chaos.ledger import Ledger

from perdure import App, current_job

app = App(retry="one-shot")
ledger = Ledger.of_environment()


class OwnBaseError(BaseException):
    """Not an Exception."""


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


@app.task
async def on_loop(behaviour: str) -> Any:
    """Misbehaves on the worker's event loop."""
    _note("start")
    return BEHAVIOURS[behaviour]()


@app.task
def in_thread(behaviour: str) -> Any:
    """Misbehaves in a thread of the worker."""
    _note("start")
    return BEHAVIOURS[behaviour]()


@app.task(process=True)
def in_child(behaviour: str) -> Any:
    """Misbehaves in a child process of the worker."""
    _note("start")
    return BEHAVIOURS[behaviour]()


@app.task
async def swallow_cancellation() -> str:
    """Hears that it is cancelled, and goes on for a while all the same."""
    _note("start")
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(3600)
    await asyncio.sleep(0.2)
    return "late"


@app.task
def leave_thread() -> None:
    """Leaves a thread behind that is no daemon and never ends."""
    _note("start")
    threading.Thread(target=threading.Event().wait, name="left behind", daemon=False).start()


@app.task
async def block_loop(seconds: float) -> None:
    """Blocks the event loop, as handlers do that call blocking code by mistake."""
    _note("start")
    time.sleep(seconds)


@app.task
def hold_interpreter(seconds: float) -> None:
    """Computes without ever letting another thread of the process run."""
    _note("start")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
    finally:
        sys.setswitchinterval(before)


@app.task
async def sleep_on_loop(seconds: float) -> None:
    """Sleeps, and notes when it is cancelled."""
    _note("start")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        _note("cancelled")
        raise
    _note("end")


@app.task
def sleep_in_thread(seconds: float) -> None:
    """Sleeps in a thread, in C code that nothing can interrupt."""
    _note("start")
    time.sleep(seconds)
    _note("end")


@app.task
def spin_in_thread(seconds: float) -> None:
    """Keeps a thread busy in Python code."""
    _note("start")
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            time.sleep(0.001)
    except BaseException:
        _note("cancelled")
        raise
    _note("end")


@app.task(process=True)
def sleep_in_child(seconds: float) -> None:
    """Sleeps in a child process."""
    _note("start")
    time.sleep(seconds)
    _note("end")


def _note(event: str) -> None:
    job = current_job()
    ledger.write(event, job=job.id, attempt=job.attempt)


def _raising(make: Callable[[], BaseException]) -> Callable[[], NoReturn]:
    def behave() -> NoReturn:
        raise make()

    return behave


def _cyclic() -> NoReturn:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    first.lock = threading.Lock()  # type: ignore[attr-defined]
    first.itself = first  # type: ignore[attr-defined]
    raise first


def _recurse() -> int:
    return 1 + _recurse()


async def _never_awaited() -> None:
    """What a handler returns that forgot its await."""


def _close_stdout() -> str:
    sys.stdout.close()
    return "closed"


def _change_directory() -> str:
    os.chdir("/")
    return "moved"


BEHAVIOURS: dict[str, Callable[[], Any]] = {
    "SystemExit": _raising(lambda: SystemExit(3)),
    "KeyboardInterrupt": _raising(KeyboardInterrupt),
    "GeneratorExit": _raising(GeneratorExit),
    "CancelledError": _raising(asyncio.CancelledError),
    "OwnBaseError": _raising(lambda: OwnBaseError("mine")),
    "StopIteration": _raising(lambda: StopIteration("stop")),
    "MemoryError": _raising(lambda: MemoryError("none left")),
    "RecursionError": _recurse,
    "UnprintableError": _raising(UnprintableError),
    "endless message": _raising(lambda: ValueError("x" * 10_000_000)),
    "unstorable message": _raising(lambda: ValueError("\x00 \ud800 \x1b[31m")),
    "cyclic error": _cyclic,
    "object": object,
    "set": lambda: {1, 2, 3},
    "NaN": lambda: float("nan"),
    "coroutine": _never_awaited,
    "endless result": lambda: "x" * 50_000_000,
    "surrogate result": lambda: "\ud800",
    "deep result": lambda: _deep(100_000),
    "closes stdout": _close_stdout,
    "changes directory": _change_directory,
    "behaves": lambda: "well",
}


def _deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found
