"""Child processes: short attempts share them, long ones get one each."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
import time

import msgspec
import pytest

from perdure.clock import SystemClock
from perdure.model.codec import encode_args
from perdure.model.job import Job, JobId, NewJob
from perdure.model.outcome import Ending, Returned
from perdure.runtime.children import Children
from perdure.runtime.handler import Handler


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
    async def at_once() -> None: ...

    children = Children()
    try:
        job = msgspec.structs.replace(a_job(0), args=encode_args((way,), {}, 1000))
        ending = await children.run(job, GRANDCHILD, 4, None, at_once)
    finally:
        children.close()
    assert isinstance(ending, Returned)
    assert msgspec.json.decode(ending.result or b"") == []
