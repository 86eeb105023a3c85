"""The app of the tests about descriptors: a task that takes all of them for a while, and tasks that go on meanwhile."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from perdure import App

app = App(retry="one-shot")
# Any module, and any file of Perdure's own, that is read while descriptors are gone is written down.
_read: list[str] = []
_is_exhausted = False


def _watch(event: str, args: tuple[object, ...]) -> None:
    if _is_exhausted and event == "import":
        _read.append(f"import {args[0]}")
    elif _is_exhausted and event == "open" and str(args[0]).endswith((".sql", ".lua", ".pyc")):
        _read.append(f"open {args[0]}")


sys.addaudithook(_watch)


@app.task
def take_all(seconds: float, done: str) -> int:
    """Open files until there are no descriptors, hold them, and give them back; gives how many there were."""
    global _is_exhausted
    taken: list[int] = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        _is_exhausted = True
        time.sleep(seconds)
        return len(taken)
    finally:
        _is_exhausted = False
        for descriptor in taken:
            os.close(descriptor)
        Path(done).write_text("\n".join(_read))


@app.task
def in_thread(number: int) -> int:
    return number


@app.task
async def on_loop(number: int) -> int:
    return number


@app.task(process=True)
def in_child(number: int) -> int:
    return number
