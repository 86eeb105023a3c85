"""The child process that runs attempts one at a time: the far end of children.py.

Started with the number of a socket as its argument, it reads calls from it. For each it finds the handler, says that it
is ready, waits for the worker's word, runs it and answers with its ending. Before the first it imports the program's
entry. What it sends carries the token of the call, so that the worker takes nothing for the answer to another.
It does not stop on SIGINT and SIGTERM, because its worker decides when it stops; it dies at once when its worker does.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import msgspec

from perdure.errors import BadPayload
from perdure.model.failure import clean
from perdure.model.job import Job, JobId
from perdure.model.outcome import Ending, Raised, Undecodable
from perdure.runtime.children.channel import HEADER
from perdure.runtime.children.entry import Entry, become_child
from perdure.runtime.children.imports import Imports, failure_of
from perdure.runtime.context import Entered, running
from perdure.runtime.handler import Handler
from perdure.runtime.liveness.fork_guard import enters_handlers, leave_copy

_PR_SET_PDEATHSIG = 1
"""The option of Linux's prctl() that sets the signal which a process gets when its parent has ended."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a child needs to find the same code as its worker."""

    path: list[str]
    entry: Entry
    worker: int
    """The worker's process id: the child runs nothing once its parent is another process."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to run."""

    token: str
    """A secret of this call alone."""
    job: Job
    module: str
    name: str
    max_attempts: int
    max_payload: int
    max_result: int
    timeout: timedelta | None


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The child has found the handler, and waits for the word to begin."""

    token: str


class Begin(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's word to enter the handler."""

    token: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """How the attempt ended."""

    token: str
    job_id: JobId
    attempt: int
    ending: Ending
    is_reusable: bool = True
    """Whether the child may run another attempt; not when its entry could be imported in part only."""

    def is_for(self, call: Call) -> bool:
        """Whether it is the answer to this call and no other."""
        return (self.token, self.job_id, self.attempt) == (call.token, call.job.id, call.job.attempt)


FromChild = Ready | Answer


def main() -> None:
    """Serve calls until the worker is gone."""
    become_child()
    _ignore_stops()
    channel = socket.socket(fileno=int(sys.argv[1]))
    # A process that a handler starts must not hold the socket: it could read calls and answer them. A forked copy
    # closes it.
    channel.set_inheritable(False)
    os.register_at_fork(after_in_child=channel.close)
    try:
        _serve(channel)
    except (EOFError, OSError):
        os._exit(0)  # the other end is closed: the worker is gone, and nobody wants the answer


def _serve(channel: socket.socket) -> None:
    hello = msgspec.json.decode(_receive(channel), type=Hello)
    sys.path[:] = hello.path
    _ask_for_death_signal()
    threading.Thread(target=_die_with_worker, args=(hello.worker,), daemon=True).start()
    imports = Imports(hello.entry)
    while True:
        call = msgspec.json.decode(_receive(channel), type=Call)
        found = _find(call, imports)
        # What was imported may have set handlers of its own for these signals.
        _ignore_stops()
        _send(channel, Ready(token=call.token))
        word = msgspec.json.decode(_receive(channel), type=Begin)
        if os.getppid() != hello.worker or word.token != call.token:
            raise EOFError  # the word outlived its sender in the socket
        ending = _run(call, found) if callable(found) else found
        is_reusable = imports.is_prepared
        _send(
            channel,
            Answer(
                token=call.token,
                job_id=call.job.id,
                attempt=call.job.attempt,
                ending=ending,
                is_reusable=is_reusable,
            ),
        )


def _find(call: Call, imports: Imports) -> Callable[..., Any] | Raised:
    """The handler, or how an attempt ends that has none."""
    try:
        return imports.handler(call.module, call.name)
    except BaseException as error:
        return Raised(error=failure_of(error, f"{call.module}:{call.name}"))


def _run(call: Call, function: Callable[..., Any]) -> Ending:
    limits = {"max_payload": call.max_payload, "max_result": call.max_result}
    handler = Handler.of(call.job.task, function, is_process=True, **limits)
    started_at = call.job.started_at or call.job.run_at
    entered = Entered(call.job, call.max_attempts, call.timeout, started_at)
    token = running.set(entered)
    try:
        positional, named = handler.arguments(call.job)
        if handler.is_async:
            return handler.returned(asyncio.run(_entered(function(*positional, **named), entered)))
        return handler.returned(_call(function, positional, named, entered))
    except BadPayload as error:
        return Undecodable(detail=clean(str(error), 500))
    except BaseException as error:  # whatever the handler raised, SystemExit included, is this attempt's ending
        return handler.raised(error, call.job)
    finally:
        running.reset(token)


async def _entered(work: Coroutine[Any, Any, Any], entered: Entered) -> Any:
    """Wait for the handler; a copy of this process that it made ends before the event loop is wound up."""
    error: BaseException | None = None
    try:
        return await work
    except BaseException as raised:
        error = raised
        raise
    finally:
        leave_copy(entered, error)


@enters_handlers
def _call(function: Callable[..., Any], positional: list[Any], named: dict[str, Any], entered: Entered) -> Any:
    """Call the handler; a copy of this process that it made ends here."""
    error: BaseException | None = None
    try:
        return function(*positional, **named)
    except BaseException as raised:
        error = raised
        raise
    finally:
        leave_copy(entered, error)


def _ignore_stops() -> None:
    """Do nothing on SIGINT and SIGTERM.

    A function and not SIG_IGN, which programs that a handler starts would inherit: nobody could terminate them.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)


def _send(channel: socket.socket, message: FromChild) -> None:
    content = msgspec.json.encode(message)
    channel.sendall(HEADER.pack(len(content)) + content)


def _receive(channel: socket.socket) -> bytes:
    header = _receive_exactly(channel, HEADER.size)
    return _receive_exactly(channel, HEADER.unpack(header)[0])


def _receive_exactly(channel: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _ask_for_death_signal() -> None:
    """Have the system kill this process with its worker, also while a handler holds the interpreter; on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _die_with_worker(parent: int) -> None:
    """End the process as soon as its parent is another one: the worker is gone and nobody wants the answer."""
    waiting = threading.Event()
    while os.getppid() == parent:
        waiting.wait(0.2)
    os._exit(1)
