"""Ends copies of this process that a handler makes with `os.fork()`, before they act for the attempt a second time.

A copy shares the worker's connections, its event loop's epoll and the socket to its parent. If it went on after the
handler, it would commit a second outcome, take jobs, and read what is meant for the original. So a copy may run the
handler's code to its end and no further:

- where a handler ends, `leave_copy` ends the process if it is a copy made during this attempt;
- where the code that forked gives control back to an event loop or a pool of threads, by waiting or by ending, a
  profile function does so: nothing else of the process may run in the copy.

Copies that never come back, such as those of multiprocessing or those that run another program, notice nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NoReturn, TypeVar

from perdure.runtime.context import Entered, running

F = TypeVar("F", bound=Callable[..., Any])

_HOSTS = frozenset(
    {
        ("asyncio.events", "_run"),
        ("asyncio.runners", "run"),
        ("concurrent.futures.thread", "run"),
        ("anyio._backends._asyncio", "run"),
        ("threading", "run"),
    }
)
"""Functions that call other code, by module and name: when that is done or waits, they turn to something else."""

_STUCK = 2.0
"""How many seconds a copy has to flush its output; a lock that another thread held at the fork stays locked."""

_STOPS = (signal.SIGTERM, signal.SIGINT)
_masks: list[tuple[int, set[Any]]] = []
"""The signals that threads had blocked before the forks that they are making now."""

_entrances: set[CodeType] = set()

copied: Entered | None = None
"""In a copy of the process that was made inside an attempt: that attempt."""


def enters_handlers(function: F) -> F:
    """Mark a function that calls blocking handlers and then calls `leave_copy`: no event loop is below it."""
    _entrances.add(function.__code__)
    return function


def leave_copy(entered: Entered, error: BaseException | None = None) -> None:
    """End this process at once if it is a copy made by this attempt's handler; call it when the handler has ended."""
    if copied is entered:
        _leave(error)


def _leave(error: BaseException | None) -> NoReturn:
    """End as Python would after this, but without running anything of the worker."""
    with contextlib.suppress(Exception):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _STUCK)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    code: object = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
    os._exit(code & 0xFF if isinstance(code, int) else 1)


def _before_fork() -> None:
    # A signal must not reach the copy while it still hears signals through what it shares with the original.
    if running.get() is not None:
        _masks.append((threading.get_ident(), signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)))


def _restore_mask() -> None:
    own = [each for each in _masks if each[0] == threading.get_ident()]
    for each in own:
        _masks.remove(each)
        signal.pthread_sigmask(signal.SIG_SETMASK, each[1])


def _after_fork() -> None:
    global copied
    entered = running.get()
    if entered is None:
        return  # the program's own fork, for example of a web server before any attempt
    copied = entered
    _leave_signals()
    _restore_mask()
    bottom = _below_host(sys._getframe())
    if bottom is not None:
        sys.setprofile(lambda frame, event, _: _leave(None) if event == "return" and frame is bottom else None)
        # A process of multiprocessing never comes back here; it shall not pay for being watched.
        pool = sys.modules.get("multiprocessing.util")
        if pool is not None:
            pool.register_after_fork(_leave, lambda _: sys.setprofile(None))


def _leave_signals() -> None:
    """Let the copy die of signals: the worker's way to hear them is shared, and would stop the original."""
    with contextlib.suppress(ValueError, OSError):
        signal.set_wakeup_fd(-1)
        for number in _STOPS:
            signal.signal(number, signal.SIG_DFL)


def _below_host(frame: FrameType | None) -> FrameType | None:
    """The frame that the nearest host called; None where the caller of a blocking handler ends the copy."""
    bottom, inner = None, frame
    while frame is not None:
        if frame.f_code in _entrances:
            return None
        if bottom is None and (frame.f_globals.get("__name__"), frame.f_code.co_name) in _HOSTS:
            bottom = inner
        inner, frame = frame, frame.f_back
    return bottom


os.register_at_fork(before=_before_fork, after_in_parent=_restore_mask, after_in_child=_after_fork)
