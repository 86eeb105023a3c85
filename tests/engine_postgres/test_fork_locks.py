"""A fork while another thread holds a lock of an open store leaves the child no lock to wait for."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest
from tests.engine_postgres.scene import RealScene

from perdure import EngineError
from perdure.engines.postgres.store import PostgresStore


@pytest.mark.parametrize("part", ["_wakeups", "_runner"])
def test_a_child_is_refused_at_once_though_the_lock_was_held_at_the_fork(
    open_one: Callable[..., PostgresStore], part: str
) -> None:
    store = open_one()
    jobs = [RealScene(store).new_job()]

    async def enqueue() -> None:
        await store.enqueue(jobs)

    with getattr(store, part)._lock:
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            try:
                store.enqueue(jobs).wait() if part == "_wakeups" else asyncio.run(enqueue())
            except EngineError:
                os._exit(0)
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
