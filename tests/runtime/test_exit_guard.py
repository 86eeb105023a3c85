"""The guard process of a worker: what it waits for, and what it leaves alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.chaos.crew import is_alive, until

from perdure.runtime.liveness.exit_guard import ExitGuard, _is_stopped


@pytest.fixture
def guard() -> Iterator[ExitGuard]:
    guard = ExitGuard(grace=3600, late=3600, max_block=3600)
    yield guard
    guard.stop()


def test_it_tells_of_a_signal_that_nobody_has_handled_yet(guard: ExitGuard) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert not guard.has_signal()
        os.kill(os.getpid(), signal.SIGTERM)
        until(guard.has_signal, "the guard has seen the signal")
        assert not guard.has_signal()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_it_outlives_the_signals_that_stop_its_worker(guard: ExitGuard) -> None:
    pid = guard._process.pid
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        until(guard.has_signal, "the guard still answers")
    finally:
        signal.signal(signal.SIGTERM, before)


def test_it_ends_when_it_is_stopped_and_gives_the_signals_back() -> None:
    guard = ExitGuard(grace=3600, late=3600, max_block=3600)
    guard.stop()
    assert not is_alive(guard._process.pid)
    assert signal.set_wakeup_fd(-1) == -1


def test_it_kills_a_worker_that_does_not_beat_any_more() -> None:
    code = (
        "import os, threading; from perdure.runtime.liveness.exit_guard import ExitGuard; "
        "ExitGuard(grace=1, late=1, max_block=1); threading.Event().wait()"
    )
    worker = subprocess.Popen([sys.executable, "-c", code])
    assert worker.wait(300) == -signal.SIGKILL


def test_it_knows_a_stopped_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    try:
        assert not _is_stopped(process.pid)
        process.send_signal(signal.SIGSTOP)
        until(lambda: _is_stopped(process.pid), "it is seen as stopped")
        process.send_signal(signal.SIGCONT)
        until(lambda: not _is_stopped(process.pid), "it is seen as running")
    finally:
        process.kill()
        process.wait()
