"""What a handler can do to its worker beyond raising: each function does one harmful thing."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable

SECONDS = 3.0
"""How long a handler blocks: longer than the leases of the crash tests."""

is_copy = False
"""Whether this process was forked by a handler; the ledger does not count what it does."""

_background: set[asyncio.Task[None]] = set()


def exit_at_once() -> None:
    os._exit(7)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def segfault() -> None:
    ctypes.string_at(0)


def raise_system_exit() -> None:
    raise SystemExit(3)


def exit_in_the_background() -> None:
    """Start a task on the event loop that raises SystemExit, which ends the loop."""

    async def leave() -> None:
        raise SystemExit(3)

    _background.add(asyncio.get_running_loop().create_task(leave()))


def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()


def cancel_all_tasks() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


def block() -> None:
    """Block the thread; on the event loop this blocks everything else that runs there."""
    time.sleep(SECONDS)


def hold_the_gil() -> None:
    """Call a C function that keeps the interpreter's lock, as a bad regular expression does."""
    ctypes.PyDLL(None).usleep(int(SECONDS * 1_000_000))


def fork() -> None:
    """Leave a copy of the process, which goes on with the handler."""
    global is_copy
    if (pid := os.fork()) > 0:
        threading.Thread(target=os.waitpid, args=(pid, 0), daemon=True).start()
    else:
        is_copy = True


KILLERS: dict[str, Callable[[], None]] = {"exits": exit_at_once, "kills itself": kill_itself, "segfaults": segfault}
"""What ends the process in every attempt."""

POISON: dict[str, tuple[str, Callable[[], None]]] = {
    "exits once": ("on_loop", exit_at_once),
    "segfaults once": ("in_thread", segfault),
    "raises SystemExit once": ("on_loop", raise_system_exit),
    "raises SystemExit in a thread once": ("in_thread", raise_system_exit),
    "exits in the background once": ("on_loop", exit_in_the_background),
    "stops the loop once": ("on_loop", stop_the_loop),
    "cancels all tasks once": ("on_loop", cancel_all_tasks),
    "blocks the loop once": ("on_loop", block),
    "holds the GIL once": ("in_thread", hold_the_gil),
    "forks once": ("on_loop", fork),
    "forks in a child once": ("in_child", fork),
}
"""What is done in the first attempt only, with the task that does it."""
