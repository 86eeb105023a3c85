"""What a worker process makes of its signals, and of the threads beside its loop."""

from __future__ import annotations

import gc
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from perdure import App
from perdure.runtime.process import run_until_signalled
from perdure.runtime.signals import one_stop
from perdure.system.clock import VirtualClock


def test_a_stop_that_a_supervised_worker_hears_twice_is_one_stop():
    clock, stops = VirtualClock(), []
    heard = one_stop(lambda: stops.append(clock.monotonic()), clock)
    heard()
    clock.advance(timedelta(seconds=0.5))
    heard()
    assert stops == [0.0]
    clock.advance(timedelta(seconds=1))
    heard()
    assert stops == [0.0, 1.5]


@pytest.mark.parametrize("is_embedded", [True, False])
def test_threads_take_turns_more_often_only_beside_an_embedded_engine(is_embedded: bool):
    class Worker:
        has_embedded_engine = is_embedded

        async def run(self, *, waits: bool = True) -> None:
            seen.append(sys.getswitchinterval())

        def stop(self) -> None: ...

    seen: list[float] = []
    before = sys.getswitchinterval()
    run_until_signalled(lambda: cast(Any, Worker()))
    assert (seen[0] < before) == is_embedded
    assert sys.getswitchinterval() == before


def test_a_worker_on_a_file_lets_its_engine_work_beside_the_loop(tmp_path: Path):
    app = App(f"sqlite:///{tmp_path}/jobs.db", auto_migrate=True)
    seen: list[float] = []

    @app.task
    async def looks() -> None:
        seen.append(sys.getswitchinterval())
        os.kill(os.getpid(), signal.SIGTERM)

    looks.enqueue()
    before = sys.getswitchinterval()
    app.run_worker()
    assert seen[0] < before
    assert sys.getswitchinterval() == before


def test_the_collector_passes_over_what_was_there_before_the_first_job_while_a_worker_runs():
    class Worker:
        has_embedded_engine = False

        async def run(self, *, waits: bool = True) -> None:
            seen.append(gc.get_freeze_count())

        def stop(self) -> None: ...

    seen: list[int] = []
    run_until_signalled(lambda: cast(Any, Worker()))
    assert seen[0] > 1000
    assert gc.get_freeze_count() == 0
