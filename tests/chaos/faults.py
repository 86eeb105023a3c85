"""Faults that strike the processes of a test: kills, stops, shortages, jumps of the clock, handlers that do harm.

A fault is a generator. It strikes, yields how many seconds it lasts, and undoes what it did. Faults of the engine's
server are in server_faults.py.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.crew import Crew, children_of, until
from tests.chaos.misbehaviour import POISON
from tests.chaos.shared_clock import SharedClock

from perdure.errors import EngineError

LEASE = 1.5
"""Seconds of the workers' lease."""
HOUR = 3600.0
_SMALLEST_FILE = 16_384
"""Bytes that a file may have while the disk looks full: a file of the ledger needs a few lines."""


@dataclass(kw_only=True)
class Stage:
    """What faults act upon."""

    crew: Crew
    clock: SharedClock
    rng: random.Random
    settings: dict[str, object]
    """Settings of the workers."""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    """Exit codes of workers that ended without a signal from here."""

    def hire(self) -> subprocess.Popen[bytes]:
        """Start one more worker."""
        worker = self.crew.worker(**self.settings)
        self.workers.append(worker)
        return worker

    def busy_worker(self) -> subprocess.Popen[bytes] | None:
        """A worker that has started a job; None while most of them are new."""
        names = os.listdir(self.crew.ledger_directory)
        pids = {int(name.partition("-")[0]) for name in names}
        busy = [worker for worker in self.workers if worker.pid in pids and worker.poll() is None]
        return self.rng.choice(busy) if 2 * len(busy) > len(self.workers) else None

    def replace(self, worker: subprocess.Popen[bytes]) -> None:
        self.workers.remove(worker)
        self.hire()

    def replace_ended(self) -> None:
        """Start a worker for each that has ended by itself."""
        for worker in [each for each in self.workers if each.poll() is not None]:
            self.exits.append(worker.returncode)
            self.replace(worker)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A kind of fault."""

    name: str
    strike: Callable[[Stage], Iterator[float]]
    uses_store: bool = False
    """Whether the strike itself needs the store, or keeps the driver from using it."""
    needs_quiet: bool = False
    """Whether it strikes only while no other fault lasts."""


def kill_worker(stage: Stage) -> Iterator[float]:
    """End a worker with SIGKILL and start another."""
    if worker := stage.busy_worker():
        stage.crew.kill(worker)
        stage.replace(worker)
    yield 0.0


def kill_worker_in_a_job(stage: Stage) -> Iterator[float]:
    """End a worker with SIGKILL while it runs a certain job, and start another."""
    crew = stage.crew
    job = crew.enqueue("on_loop", "slow once", seconds=600, limit=8, priority=100)

    def find_worker() -> subprocess.Popen[bytes] | str | None:
        stage.replace_ended()
        if crew.seen("end", job=job):
            return "ended"
        pids = {start.pid for start in crew.seen("start", job=job)}
        return next((worker for worker in stage.workers if worker.pid in pids), None)

    try:
        worker = until(find_worker, "the job runs", every=0.1)
    except AssertionError as error:
        raise AssertionError(f"{error}: {crew.client.get(job)}, {crew.client.workers()}") from None
    if worker == "ended":
        return  # an earlier fault ended its first worker, and only the first attempt is slow
    crew.kill(worker)
    stage.replace(worker)
    yield 0.0


def terminate_worker(stage: Stage) -> Iterator[float]:
    """End a worker with SIGTERM while it has work, and start another."""
    if worker := stage.busy_worker():
        worker.send_signal(signal.SIGTERM)
        # As service managers do: another fault may have stopped it, and then it would not see the signal.
        worker.send_signal(signal.SIGCONT)
        stage.replace(worker)
        yield 0.5
        # Another fault may have ended it first: what counts here is that it does end.
        stage.exits.append(worker.wait(60))


def stop_worker(stage: Stage) -> Iterator[float]:
    """Stop a worker where it stands, often for longer than its lease."""
    worker = stage.busy_worker()
    if worker is not None and stage.crew.try_freeze(worker):
        yield stage.rng.uniform(0.2, 2.0) * LEASE
        worker.send_signal(signal.SIGCONT)


def kill_child(stage: Stage) -> Iterator[float]:
    """Kill a child process in which a worker runs jobs."""
    worker = stage.busy_worker()
    children = children_of(worker.pid) if worker else []
    if children:
        stage.crew.ledger.write("kill", note=str(children[0]))
        _signal(children[0], signal.SIGKILL)
    yield 0.0


def use_up_descriptors(stage: Stage) -> Iterator[float]:
    """Leave a worker no file descriptor to open."""
    worker = stage.busy_worker()
    if worker is not None:
        yield from _limited(worker, resource.RLIMIT_NOFILE, lambda pid: len(os.listdir(f"/proc/{pid}/fd")), stage)


def use_up_memory(stage: Stage) -> Iterator[float]:
    """Leave a worker no memory to ask for."""
    worker = stage.busy_worker()
    if worker is not None:
        yield from _limited(worker, resource.RLIMIT_AS, _address_space, stage)


def fill_disk(stage: Stage) -> Iterator[float]:
    """Let every write of a worker beyond the first kilobytes of a file fail."""
    worker = stage.busy_worker()
    if worker is not None:
        yield from _limited(worker, resource.RLIMIT_FSIZE, lambda _: _SMALLEST_FILE, stage)


def set_clock(stage: Stage) -> Iterator[float]:
    """Set the wall clock of all processes an hour forward or back, at most three hours from the real time."""
    step = stage.rng.choice([-HOUR, HOUR])
    if abs(stage.clock.offset + step) > 3 * HOUR:
        step = -step
    stage.clock.set(stage.clock.offset + step)
    yield 0.3


def add_worker_without_tasks(stage: Stage) -> Iterator[float]:
    """Let a worker of an older version, which knows one task only, take part for a while."""
    worker = stage.crew.worker("tests.chaos.older_version", **stage.settings)
    yield stage.rng.uniform(1.5, 3.0)
    stage.crew.kill(worker)


def poison(behaviour: str) -> Fault:
    """A job that does harm in its first attempt."""

    def strike(stage: Stage) -> Iterator[float]:
        try:
            stage.crew.enqueue(POISON[behaviour][0], behaviour, limit=8)
        except EngineError:
            pass  # It may exist or not, as the ledger has it.
        yield 0.5

    return Fault(name=f"a job {behaviour}", strike=strike, uses_store=True)


PROCESS_FAULTS = (
    Fault(name="worker killed", strike=kill_worker),
    Fault(name="worker killed in a job", strike=kill_worker_in_a_job, uses_store=True, needs_quiet=True),
    Fault(name="worker terminated", strike=terminate_worker),
    Fault(name="worker stopped", strike=stop_worker),
    Fault(name="child killed", strike=kill_child),
    Fault(name="no descriptors", strike=use_up_descriptors),
    Fault(name="no memory", strike=use_up_memory),
    Fault(name="clock set", strike=set_clock),
    Fault(name="older version", strike=add_worker_without_tasks),
    *map(poison, POISON),
)


def _limited(worker: subprocess.Popen[bytes], limit: int, size: Callable[[int], int], stage: Stage) -> Iterator[float]:
    """Lower a limit of a process to what it has, for a while."""
    try:
        _, hard = resource.prlimit(worker.pid, limit)
        resource.prlimit(worker.pid, limit, (size(worker.pid), hard))
    except (ProcessLookupError, FileNotFoundError):
        return
    yield stage.rng.uniform(0.5, 2.0) * LEASE
    try:
        # Not to what it was: another fault may have lowered it before.
        resource.prlimit(worker.pid, limit, (hard, hard))
    except ProcessLookupError:
        pass


def _address_space(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
