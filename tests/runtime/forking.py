"""The app of the fork tests: handlers that fork, with what each process does written to a file."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from perdure import App

app = App(retry="one-shot")


def note(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(f"{text} {os.getpid()}\n")


def fork(path: str, how: str) -> None:
    """Fork; the copy ends the handler in its own way, and the original goes on."""
    pid = os.fork()
    if pid:
        note(path, "original")
        return
    note(path, "copy")
    if how == "raises":
        raise ValueError("in the copy")
    if how == "exits":
        sys.exit(3)


@app.task
async def on_loop(path: str, how: str = "returns") -> str:
    fork(path, how)
    if how == "awaits":
        await asyncio.sleep(0)
        note(path, "after await")
    if how == "waits":
        await asyncio.sleep(0.05)
    return "done"


@app.task(timeout="60s")
async def on_loop_later(path: str, how: str = "returns") -> str:
    """Forks after it has waited, under a timeout, in a task of its own."""
    await asyncio.sleep(0.01)

    async def inner() -> None:
        fork(path, how)
        await asyncio.sleep(0)

    await asyncio.gather(inner(), asyncio.sleep(0.01))
    return "done"


@app.task
async def in_pool_thread(path: str, how: str = "returns") -> str:
    await asyncio.to_thread(fork, path, how)
    return "done"


@app.task
def in_thread(path: str, how: str = "returns") -> str:
    fork(path, how)
    return "done"


@app.task(process=True)
def in_child(path: str, how: str = "returns") -> str:
    fork(path, how)
    return "done"


@app.task(process=True)
async def in_child_async(path: str, how: str = "returns") -> str:
    fork(path, how)
    await asyncio.sleep(0.01)
    return "done"


@app.task(process=True)
def always_raises(path: str) -> str:
    note(path, "raises")
    raise RuntimeError("as always")


@app.task(process=True)
def answers_forged(path: str) -> str:
    """Sends bytes of its own to the worker, as a stray copy might: the socket is the only one here."""
    for descriptor in range(3, 64):
        try:
            os.fstat(descriptor)
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):
                os.write(descriptor, b"\x00\x00\x00\x02{}")
        except OSError:
            continue
    return "done"


@app.task(process=True)
def leaves_grandchild(path: str) -> str:
    """Dies while a process that it started lives on with all its descriptors."""
    pid = os.fork()
    if pid == 0:
        note(path, "grandchild")
        time.sleep(600)
        os._exit(0)
    while not os.path.exists(path):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@app.task
async def uses_pool(path: str) -> int:
    """Processes of multiprocessing, forked from the worker, do their work."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, pow, 2, 10)


@app.task
async def ends_its_copy(path: str) -> str:
    """A copy can be ended by a signal, and the worker does not take the signal for its own."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    return f"signal {os.WTERMSIG(status)}"


@app.task(process=True)
def terminates_program(path: str) -> int:
    """A program that a child starts can be terminated."""
    with subprocess.Popen(["sleep", "600"]) as program:
        program.terminate()
        return program.wait()


@app.task
async def exit_code(path: str, how: str) -> int:
    pid = os.fork()
    if pid == 0:
        if how == "exits":
            sys.exit(3)
        if how == "raises":
            raise ValueError("in the copy")
        return -1
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


@app.task
async def plain(path: str) -> str:
    note(path, "plain")
    return "plain"
