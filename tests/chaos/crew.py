"""The processes of a test: starts them, signals them, and leaves none behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.ledger import LEDGER, Event, Ledger, read

from perdure import App, Client, Job
from perdure.model.state import Delivery

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0
"""How many seconds a condition may take to come true before a test takes it for a hang; a busy machine is slow."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An empty store of one engine."""

    url: str
    find_damage: Callable[[], list[str]]
    """What the engine's own check says about its data; empty when all is well."""
    is_free: Callable[[], bool]
    """Whether nobody holds a lock that keeps all others from writing."""


class Crew:
    """All processes that one test starts on one store."""

    def __init__(self, engine: Engine, directory: Path) -> None:
        self._engine = engine
        self.directory = directory
        self.ledger_directory = directory / "ledger"
        self.ledger_directory.mkdir()
        self.ledger = Ledger(self.ledger_directory)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment: dict[str, str] = {}
        """Variables that every process gets."""
        self._watching = App(engine.url)
        self._keys = itertools.count()
        self._output = (directory / "output.txt").open("ab")

    @property
    def client(self) -> Client:
        """A view of the store from outside of all processes under test."""
        return self._watching.client()

    def start(self, *arguments: str, **settings: object) -> subprocess.Popen[bytes]:
        """Start a Python process on the store; settings are Perdure's, by name."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")},
            **{f"PERDURE_{name.upper()}": str(value) for name, value in settings.items()},
            "PERDURE_URL": self._engine.url,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            LEDGER: str(self.ledger_directory),
            **self.environment,
        }
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env=environment,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )
        self.processes.append(process)
        return process

    def worker(self, module: str = "tests.chaos.work", **settings: object) -> subprocess.Popen[bytes]:
        """Start a worker of a module's app."""
        settings = {"lease": "2s", "poll": "200ms", "concurrency": 8, "grace": "20s", **settings}
        return self.start("-c", f"from {module} import app; app.run_worker()", **settings)

    def hoarder(self, *, slots: int, **settings: object) -> subprocess.Popen[bytes]:
        """Start a worker that holds more jobs than it has slots for: at least five, at most eight, in its buffer."""
        worker = self.worker("tests.chaos.work", concurrency=slots, prefetch="1h", max_prefetch=8, **settings)
        # How much a worker holds in advance follows from what it has done: let it do something.
        for _ in range(40):
            self.enqueue("on_loop")
        until(self.is_drained, "the worker has warmed up")
        return worker

    def produce(
        self, key: str, count: int, mode: str, *, seed: int, seconds: float = 0.0, rate: float = 0.0
    ) -> subprocess.Popen[bytes]:
        """Start a producer; see produce.py."""
        return self.start("-m", "tests.chaos.produce", key, *map(str, (count, mode, seed, seconds, rate)))

    def enqueue(
        self,
        task: str,
        behaviour: str = "returns",
        seconds: float = 0.0,
        *,
        limit: int = 5,
        delivery: Delivery = "at_least_once",
        **options: Any,
    ) -> str:
        """Enqueue one job of a task of the crash tests from here, on the record."""
        key = f"here-{next(self._keys)}"
        self.ledger.write("enq_invoke", key=key, limit=limit, delivery=delivery)
        arguments = [key, behaviour, seconds]
        job_id = self._watching.enqueue_named(task, arguments, {}, max_attempts=limit, delivery=delivery, **options)
        self.ledger.write("enq_ok", key=key, job=job_id)
        return job_id

    def enqueue_named(self, task: str, *args: object, **options: Any) -> str:
        """Enqueue one job of any other task, off the record."""
        return self._watching.enqueue_named(task, args, {}, **options)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process in the hardest way, on the record."""
        self.ledger.write("kill", note=str(process.pid))
        process.kill()
        process.wait()

    def freeze(self, process: subprocess.Popen[bytes]) -> None:
        """Stop a process where it stands, but not in the middle of a write: no engine can write past a held lock."""
        assert self.try_freeze(process, 100), "the process was never found without the engine's lock"

    def try_freeze(self, process: subprocess.Popen[bytes], tries: int = 3) -> bool:
        """Stop a process where it stands; False, with the process going on, if it always held the engine's lock."""
        for _ in range(tries):
            process.send_signal(signal.SIGSTOP)
            if self._engine.is_free():
                return True
            process.send_signal(signal.SIGCONT)
        return False

    def events(self, pid: int | None = None) -> list[Event]:
        """The ledger as it is now, of all processes or of one."""
        return read(self.ledger_directory, pid)

    def seen(self, event: str, *, pid: int | None = None, **fields: Any) -> list[Event]:
        """The events of a kind with these fields."""
        return [
            each
            for each in self.events(pid)
            if each.event == event and all(getattr(each, name) == value for name, value in fields.items())
        ]

    def job(self, job_id: str) -> Job:
        """A job as the store has it now."""
        return self.client.get(job_id)

    def state(self, job_id: str) -> str:
        """A job's state."""
        return self.job(job_id).state

    def outcomes(self, job_id: str) -> list[str]:
        """How each attempt of a job ended, oldest first."""
        return [attempt.outcome for attempt in self.client.history(job_id)]

    def registered(self) -> dict[int, str]:
        """The registered workers: process id and worker id."""
        return {worker.pid: worker.id for worker in self.client.workers()}

    def jobs(self) -> list[Job]:
        """Every job in the store."""
        found: list[Job] = []
        cursor: str | None = None
        while True:
            page = self.client.list(limit=1000, cursor=cursor)
            found += page
            cursor = page.next_cursor
            if cursor is None:
                return found

    def is_drained(self) -> bool:
        """Whether no job is waiting, ready or running."""
        stats = self.client.stats()
        return stats.waiting + stats.ready + stats.running == 0

    def stop(self, *processes: subprocess.Popen[bytes], within: float = PATIENCE) -> list[int]:
        """Ask processes to end and wait for them; their exit codes."""
        for process in processes:
            process.send_signal(signal.SIGTERM)
        return [process.wait(within) for process in processes]

    def close(self) -> None:
        """Leave nothing behind."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self._watching.close()
        self._output.close()

    def output(self) -> str:
        """What all processes printed."""
        return (self.directory / "output.txt").read_text(errors="replace")


def children_of(pid: int) -> list[int]:
    """The process ids of a process's children."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has collected yet has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(status) and not status.startswith("Z")


def until(condition: Callable[[], Any], what: str, *, within: float = PATIENCE, every: float = 0.02) -> Any:
    """Wait until the condition gives something, and give that; fail with `what` when it takes too long."""
    deadline = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what}")
        time.sleep(every)
