"""Child processes: short attempts share them, long ones get one each."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from perdure.model.job import Job, JobId, NewJob
from perdure.model.outcome import Ending, Returned, Vanished
from perdure.model.payload.codec import encode_args
from perdure.runtime.children.channel import HEADER, Channel
from perdure.runtime.children.pool import Children
from perdure.runtime.handler import Handler
from perdure.system.clock import SystemClock


def pid_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


HANDLER = Handler.of("pid_after", pid_after, is_process=True, max_payload=1000, max_result=1000)


def a_job(seconds: float) -> Job:
    now = SystemClock().now()
    new = NewJob(id=JobId("01900000-0000-7000-8000-000000000000"), task="pid_after", queue="default", args=b"{}")
    return Job(
        id=new.id,
        task=new.task,
        queue=new.queue,
        state="running",
        lane="fresh",
        args=encode_args((seconds,), {}, 1000),
        priority=0,
        run_at=now,
        attempt=1,
        failures=0,
        recoveries=0,
        delivery="at_least_once",
        created_at=now,
    )


async def pids_of(children: Children, seconds: float, count: int) -> set[int]:
    async def at_once() -> None: ...

    async def run() -> Ending:
        return await children.run(a_job(seconds), HANDLER, 4, None, at_once)

    endings = await asyncio.gather(*(run() for _ in range(count)))
    assert all(isinstance(ending, Returned) for ending in endings)
    return {msgspec.json.decode(ending.result) for ending in endings if isinstance(ending, Returned) and ending.result}


async def test_short_attempts_share_a_child_and_long_ones_get_one_each():
    children = Children()
    try:
        await pids_of(children, 0, 1)
        assert len(await pids_of(children, 0, 12)) < 12
        assert len(await pids_of(children, 1.5, 3)) == 3
    finally:
        children.close()


def sockets_of_a_grandchild(way: str) -> list[str]:
    """The sockets that a process has which the handler starts."""
    look = "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n != '3'])"
    if way == "fork":
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(
                write, repr([os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")[:-1]]).encode()
            )
            os._exit(0)
        os.wait()
        said = os.read(read, 100_000).decode()
    else:
        # Not closed by subprocess: what os.system, os.popen and C libraries start gets all that may be inherited.
        command = [sys.executable, "-c", f"import contextlib, os\nwith contextlib.suppress(OSError):\n  {look}"]
        said = subprocess.run(command, close_fds=False, capture_output=True, text=True, check=True).stdout
    return [one for one in ast.literal_eval(said) if one.startswith("socket:")]


GRANDCHILD = Handler.of("sockets", sockets_of_a_grandchild, is_process=True, max_payload=1000, max_result=10_000)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks at the descriptors of processes under /proc")
@pytest.mark.parametrize("way", ["exec", "fork"])
async def test_what_a_handler_starts_does_not_get_the_socket_of_its_child_process(way: str):
    children = Children()
    try:
        job = msgspec.structs.replace(a_job(0), args=encode_args((way,), {}, 1000))
        ending = await children.run(job, GRANDCHILD, 4, None, at_once)
    finally:
        children.close()
    assert isinstance(ending, Returned)
    assert msgspec.json.decode(ending.result or b"") == []


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


DIES = Handler.of("die", die, is_process=True, max_payload=1000, max_result=1000)


def without_arguments() -> Job:
    return msgspec.structs.replace(a_job(0), args=encode_args((), {}, 1000))


async def at_once() -> None: ...


@pytest.mark.parametrize("has_descriptors", [True, False])
async def test_a_child_that_dies_is_noticed_by_descriptor_and_by_polling(
    monkeypatch: pytest.MonkeyPatch, has_descriptors: bool
) -> None:
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open")
    children = Children()
    try:
        ending = await children.run(without_arguments(), DIES, 4, None, at_once)
        assert isinstance(ending, Vanished)
        assert "was ended by SIGKILL" in ending.detail
    finally:
        children.close()


async def test_an_idle_child_that_died_costs_the_next_attempt_nothing() -> None:
    children = Children()
    try:
        (victim,) = await pids_of(children, 0, 1)
        os.kill(victim, signal.SIGKILL)
        (other,) = await pids_of(children, 0, 1)
        assert other != victim
    finally:
        children.close()


def answer_twice() -> str:
    """Leave a second answer behind, as a copy of the process would that got past its guard."""
    (number,) = [
        number
        for number in range(3, 64)
        if os.path.exists(f"/proc/self/fd/{number}") and os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
    ]
    copy = os.dup(number)

    def later() -> None:
        content = b'{"type":"Answer","token":"x","job_id":"y","attempt":1,"ending":{"type":"Returned"}}'
        os.write(copy, len(content).to_bytes(4) + content)

    threading.Timer(0.2, later).start()
    return "first"


TWICE = Handler.of("answer_twice", answer_twice, is_process=True, max_payload=1000, max_result=1000)


async def test_a_second_answer_ends_the_child_and_costs_the_next_attempt_nothing() -> None:
    children = Children()
    try:
        first = await children.run(without_arguments(), TWICE, 4, None, at_once)
        assert first == Returned(result=b'"first"')
        # Wait until the stray answer is there.
        (idle,) = children._idle
        while idle._channel.is_quiet:
            await asyncio.sleep(0.01)
        assert len(await pids_of(children, 0, 1)) == 1
        assert idle not in children._idle
    finally:
        children.close()


class ShortOfMemory(socket.socket):
    """A socket whose first reads find no memory."""

    tries = 0

    def recv(self, size: int, flags: int = 0) -> bytes:
        type(self).tries += 1
        if self.tries <= 3:
            raise MemoryError
        return super().recv(size, flags)


@pytest.mark.parametrize("is_ended", [False, True], ids=["alive", "ended"])
async def test_an_answer_that_came_while_memory_was_short_is_read_later(
    is_ended: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShortOfMemory, "tries", 0)
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-c", "" if is_ended else "input()"], stdin=subprocess.PIPE)
    with theirs, process:
        if is_ended:
            process.wait(60)
        channel = Channel(ShortOfMemory(fileno=ours.detach()), process)
        theirs.sendall(HEADER.pack(2) + b"42")
        assert await asyncio.wait_for(channel.receive(), 60) == b"42"
        channel.close()
        process.kill()
    assert ShortOfMemory.tries >= 4
    assert "Exception in callback" not in caplog.text
