"""The child process that runs attempts one at a time: the far end of children.py.

Started with the number of a socket as its argument, it reads calls from it. For each it finds the handler, says that it
is ready, waits for the worker's word, runs it and answers with its ending.
It ignores SIGINT and SIGTERM, because its worker decides when it stops; it dies at once when its worker does.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import runpy
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from perdure.errors import BadPayload
from perdure.model.failure import Failure, capture, clean
from perdure.model.job import Job
from perdure.model.outcome import Ending, Raised, Undecodable
from perdure.runtime.context import Entered, running
from perdure.runtime.handler import Handler

HEADER = struct.Struct("!I")
SIGN = HEADER.pack(0)
"""A frame with nothing in it: from the child "I am ready", from the worker "begin"."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a child needs to find the same code as its worker."""

    path: list[str]
    main: str | None
    """The file that the worker's `__main__` came from, if handlers may live there."""
    worker: int
    """The worker's process id: the child runs nothing once its parent is another process."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to run."""

    job: Job
    module: str
    name: str
    max_attempts: int
    max_payload: int
    max_result: int
    timeout: timedelta | None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How the attempt ended."""

    ending: Ending


def main() -> None:
    """Serve calls until the worker is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        _serve(channel)
    except (EOFError, OSError):
        os._exit(0)  # the other end is closed: the worker is gone, and nobody wants the answer


def _serve(channel: socket.socket) -> None:
    hello = msgspec.json.decode(_receive(channel), type=Hello)
    sys.path[:] = hello.path
    threading.Thread(target=_die_with_worker, args=(hello.worker,), daemon=True).start()
    functions = _Functions(hello.main)
    while True:
        call = msgspec.json.decode(_receive(channel), type=Call)
        found = _find(call, functions)
        channel.sendall(SIGN)
        _receive(channel)
        if os.getppid() != hello.worker:
            raise EOFError  # the word outlived its sender in the socket
        ending = _run(call, found) if callable(found) else found
        answer = msgspec.json.encode(Answer(ending=ending))
        channel.sendall(HEADER.pack(len(answer)) + answer)


class _Functions:
    """Finds handlers by module and name."""

    def __init__(self, main_file: str | None) -> None:
        self._main_file = main_file
        self._main: dict[str, Any] | None = None

    def find(self, module: str, name: str) -> Callable[..., Any]:
        if module == "__main__" and self._main_file is not None:
            if self._main is None:
                self._main = runpy.run_path(self._main_file, run_name="__perdure_child__")
            first, *rest = name.split(".")
            found: Any = self._main[first]
        else:
            found, rest = importlib.import_module(module), name.split(".")
        for part in rest:
            found = getattr(found, part)
        # The name leads to the task, whose function is the handler.
        function: Callable[..., Any] = getattr(found, "function", found)
        return function


def _find(call: Call, functions: _Functions) -> Callable[..., Any] | Raised:
    """The handler, or how an attempt ends that has none."""
    try:
        return functions.find(call.module, call.name)
    except BaseException as error:
        failure = capture(error)
        message = clean(f"the child process could not import {call.module}:{call.name}: {failure}", 1000)
        return Raised(error=Failure(type="ImportError", message=message, trace=failure.trace))


def _run(call: Call, function: Callable[..., Any]) -> Ending:
    limits = {"max_payload": call.max_payload, "max_result": call.max_result}
    handler = Handler.of(call.job.task, function, is_process=True, **limits)
    started_at = call.job.started_at or call.job.run_at
    token = running.set(Entered(call.job, call.max_attempts, call.timeout, started_at))
    try:
        positional, named = handler.arguments(call.job)
        if handler.is_async:
            return handler.returned(asyncio.run(function(*positional, **named)))
        return handler.returned(function(*positional, **named))
    except BadPayload as error:
        return Undecodable(detail=clean(str(error), 500))
    except BaseException as error:  # whatever the handler raised, SystemExit included, is this attempt's ending
        return handler.raised(error, call.job)
    finally:
        running.reset(token)


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


def _die_with_worker(parent: int) -> None:
    """End the process as soon as its parent is another one: the worker is gone and nobody wants the answer."""
    waiting = threading.Event()
    while os.getppid() == parent:
        waiting.wait(0.2)
    os._exit(1)
