"""The app of handlers that break their worker: its event loop, its tasks, its interpreter or its end."""

from __future__ import annotations

import _thread
import asyncio
import atexit
import contextlib
import ctypes
import os
import re
import signal
import threading
import time

from tests.chaos.ledger import Ledger

from perdure import App, current_job

app = App(retry="fixed(10ms, max_attempts=3)")
ledger = Ledger.of_environment()
_kept: list[object] = []


@app.task
async def raise_in_background(kind: str) -> None:
    """Starts a task beside itself that raises something which asyncio passes on to whoever runs the loop."""
    _note("start")

    async def beside() -> None:
        raise SystemExit(0) if kind == "SystemExit" else KeyboardInterrupt

    _kept.append(asyncio.create_task(beside()))
    await asyncio.sleep(0.01)


@app.task
async def stop_loop() -> None:
    """Stops the event loop."""
    _note("start")
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


@app.task
async def cancel_all(spares_itself: bool) -> None:
    """Cancels the tasks of the loop."""
    _note("start")
    for task in asyncio.all_tasks():
        if not (spares_itself and task is asyncio.current_task()):
            task.cancel()


@app.task
async def cancel_itself() -> str:
    """Returns while its own cancellation is pending."""
    _note("start")
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "returned"


@app.task
async def swallow_for_ever() -> None:
    """Goes on whenever it is cancelled."""
    _note("start")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


@app.task
async def swallow_in_background() -> None:
    """Leaves a task behind that goes on whenever it is cancelled."""
    _note("start")
    _kept.append(asyncio.create_task(swallow_for_ever.function()))


@app.task
async def block_loop(seconds: float) -> None:
    """Blocks the event loop."""
    _note("start")
    time.sleep(seconds)


@app.task(timeout="300ms")
async def block_loop_past_timeout(seconds: float) -> None:
    """Blocks the event loop for longer than its timeout."""
    _note("start")
    time.sleep(seconds)


@app.task(timeout="300ms")
async def wait_then_block_loop(seconds: float) -> None:
    """Blocks the event loop after it has waited once, for longer than its timeout, where nothing can break it off."""
    _note("start")
    await asyncio.sleep(0.01)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(BaseException):
            time.sleep(end - time.monotonic())


@app.task
def exit_process() -> None:
    """Ends the process from a thread, without a word to anybody."""
    _note("start")
    os._exit(7)


@app.task
def interrupt_main() -> str:
    """Does from a thread what Ctrl-C does."""
    _note("start")
    _thread.interrupt_main()
    return "returned"


@app.task
def backtrack() -> None:
    """Holds the interpreter for hours in a thread: the time grows with two to the power of the length."""
    _note("start")
    re.match(r"(a+)+$", "a" * 60 + "b")


@app.task
async def backtrack_on_loop() -> None:
    """The same on the event loop."""
    _note("start")
    re.match(r"(a+)+$", "a" * 60 + "b")


@app.task(process=True)
def ignore_signals_in_child() -> None:
    """Runs in a child process that no signal but SIGKILL ends."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _note("start")
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(3600)


@app.task
def never_return() -> None:
    """Blocks its thread for ever."""
    _note("start")
    threading.Event().wait()


@app.task
def leave_exit_hanging() -> None:
    """Leaves something behind that the interpreter waits for when it exits."""
    _note("start")
    atexit.register(time.sleep, 3600)
    threading.Thread(target=threading.Event().wait, daemon=False).start()


@app.task
async def wait_on_loop(seconds: float) -> None:
    """Waits, as a bystander."""
    _note("start")
    await asyncio.sleep(seconds)


@app.task(timeout="300ms")
async def hold_interpreter(seconds: float, then: str) -> None:
    """Lets no other thread of the process run, where it runs in the worker's process."""
    _note("start")
    await asyncio.sleep(0.1)
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    if then == "raises":
        raise ValueError("after all that time")
    await asyncio.sleep(0.5)


def _note(event: str) -> None:
    job = current_job()
    ledger.write(event, job=job.id, attempt=job.attempt)
