"""The demo's workers: real processes, started, listened to, killed, replaced and stopped.

Every worker writes its log as JSON into a pipe that a thread reads. Workers also hold one end of a pipe whose other end
only the demo has: however the demo ends, they notice and stop.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import msgspec

from perdure.cli.demo.ledger import FOLDER_VARIABLE
from perdure.runtime.supervisor import LIFELINE
from perdure.system.clock import Clock

_COMMAND = "from perdure.cli.demo.tasks import work; work()"
_LAST_WORDS = 20


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One log record of the worker process with this pid."""

    pid: int
    record: dict[str, Any]


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """A worker process that ended without being asked to."""

    pid: int
    code: int
    """The exit code; a killed process has the signal's number, negated."""


class Crew:
    """The worker processes of one run."""

    def __init__(self, folder: Path, *, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._lifeline, self._lifeline_end = os.pipe()
        self.last_words: list[str] = []
        """What workers wrote beside their log: the reason, when one cannot start."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The worker processes that have not been seen to end."""
        return tuple(self._processes)

    def start(self) -> int:
        """Start one more worker process; gives its pid."""
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND],
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[self._lifeline],
            start_new_session=True,  # Ctrl-C is for the demo, which then stops its workers in order
        )
        self._processes[process.pid] = process
        assert process.stderr is not None
        threading.Thread(
            target=self._listen, args=(process.pid, process.stderr), name="perdure-demo-listener", daemon=True
        ).start()
        return process.pid

    def hear(self, span: float) -> list[Heard]:
        """Listen for so many seconds; gives the log records of that time."""
        until = self._clock.monotonic() + span
        found: list[Heard] = []
        while True:
            try:
                found.append(self._heard.get(timeout=max(0.0, until - self._clock.monotonic())))
            except queue.Empty:
                return found

    def gone(self) -> list[Gone]:
        """The workers that have ended since the last call."""
        ended = [(pid, code) for pid, process in self._processes.items() if (code := process.poll()) is not None]
        for pid, _ in ended:
            del self._processes[pid]
        return [Gone(pid=pid, code=code) for pid, code in ended]

    def kill(self, pid: int) -> bool:
        """SIGKILL one worker and wait for its end; whether it was there to be killed."""
        process = self._processes.get(pid)
        if process is None or process.poll() is not None:
            return False
        process.kill()
        process.wait()
        return True

    def stop(self, patience: float) -> None:
        """Ask every worker to stop, and end those that do not; children of a killed worker end by themselves."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        until = self._clock.monotonic() + patience
        for process in self._processes.values():
            try:
                process.wait(max(0.0, until - self._clock.monotonic()))
            except subprocess.TimeoutExpired:
                pass  # killed below
        for process in self._processes.values():
            # Only while it is not waited for does its number surely belong to it, and to the children in its group.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._processes.clear()
        for end in (self._lifeline, self._lifeline_end):
            os.close(end)

    def _environment(self) -> dict[str, str]:
        """The demo's own environment without settings, and with the code wherever the demo found it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
        path = os.pathsep.join(os.path.abspath(part) for part in sys.path if part)
        return {
            **kept,
            "PYTHONPATH": path,
            FOLDER_VARIABLE: str(self._folder),
            LIFELINE: str(self._lifeline),
        }

    def _listen(self, pid: int, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                try:
                    self._heard.put(Heard(pid=pid, record=msgspec.json.decode(line, type=dict[str, Any])))
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    self.last_words = [*self.last_words, line.decode("utf-8", "replace").rstrip()][-_LAST_WORDS:]
