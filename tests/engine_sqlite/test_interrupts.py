"""An interrupt at any moment of a call, as Ctrl-C is one, leaves a store that can be used and closed."""

from __future__ import annotations

import linecache
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from perdure import App
from perdure.store import Store


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt."""


class InterruptAt:
    """Raises at the n-th line that the `with` gets to; whether there was such a line is known afterwards."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.has_struck = False

    def __enter__(self) -> InterruptAt:
        self._before = sys.gettrace()
        sys.settrace(self._step)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        # The end of a block goes on to the exit of its `with` without a moment in between; a trace alone knows of one.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not line.lstrip().startswith("with "):
            self._left -= 1
            if self._left == 0:
                self.has_struck = True
                raise Interrupt
        return self._step


def read(store: Store) -> None:
    store.now().wait()


def write(store: Store) -> None:
    store.pause("mail", "for a while").wait()


def is_done_by_another_thread(work: Any) -> bool:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    return not thread.is_alive()


@pytest.mark.parametrize("ask", [read, write])
def test_a_store_is_not_locked_by_an_interrupt_at_any_line_of_a_call(tmp_path: Path, ask: Any) -> None:
    path = tmp_path / "jobs.db"
    store = App(f"sqlite:///{path}").store
    kept: list[Interrupt] = []  # who handles an interrupt has its traceback, and with it all that was open on the way
    for number in range(1, 1000):
        interrupting = InterruptAt(number)
        try:
            with interrupting:
                ask(store)
        except Interrupt as interrupt:
            kept.append(interrupt)
        if not interrupting.has_struck:
            break
        can_be_written_by_others(path)
        assert is_done_by_another_thread(lambda: ask(store)), f"stuck after an interrupt at line {number}"
    assert 10 < len(kept) < 900
    assert is_done_by_another_thread(store.close)


def can_be_written_by_others(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
