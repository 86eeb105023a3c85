"""The ground of one measurement: a fresh store, a tally, and processes bounded in time and ended by their ids."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.catalogue import Peer
from bench.environments import ROOT, python_of
from bench.servers import Server
from bench.tally import Tally

POLL = 0.004
START = 30.0
FAREWELL = 5.0


class FailedError(Exception):
    """A measurement could not be made; says why."""


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """What an enqueue came to; the first job is not timed."""

    jobs: int
    timed: int
    seconds: float
    due: float
    """When they may run, in seconds since 1970."""

    @property
    def rate(self) -> float:
        return self.timed / max(self.seconds, 1e-9)


class Ground:
    """Runs one peer on one engine; leave it and all it started is ended and removed."""

    def __init__(self, peer: Peer, engine: str, server: Server, jobs: int, *, limit: float, runs: int = 1) -> None:
        self.peer = peer
        self.engine = engine
        self.jobs = jobs
        self.limit = limit
        self.runs = runs
        """How often a job runs until it is done."""
        self._server = server
        self._workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Ground:
        self._python = python_of(self.peer)
        self._directory = tempfile.TemporaryDirectory(prefix="pd-bench-", dir=_shared_memory())
        self._folder = Path(self._directory.name)
        self.tally = Tally.make(self._folder / "tally", self.jobs)
        self._url = self._server.fresh()
        try:
            self.ask("setup")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_workers()
        self._server.forget(self._url)
        self.tally.close()
        self._directory.cleanup()

    def ask(self, verb: str, *arguments: object) -> dict[str, Any]:
        """Run a verb of the adapter in the peer's environment."""
        module = self.peer.adapter(self.engine)
        command = [self._python, "-m", "bench.peers", module, verb, *map(str, arguments)]
        # Its own work is bounded by `limit`; opening and closing come on top.
        with subprocess.Popen(
            command,
            env=self._environment(),
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                said, errors = process.communicate(timeout=6 * self.limit + START)
            except subprocess.TimeoutExpired:
                raise FailedError(f"{verb} did not end within {6 * self.limit + START:.0f} s") from None
            finally:
                _end(process)
        if process.returncode != 0:
            raise FailedError(f"{verb}: {_last_line(errors)}")
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        if "missing" in found:
            raise FailedError(f"has no {found['missing']}")
        return found

    def enqueue(self, verb: str, task: str, jobs: int | None = None, *, first: int = 0, due: float = 0.0) -> Enqueued:
        """Enqueue jobs, timed inside the process that does it; `due` is how many seconds later they may run."""
        wanted = self.jobs if jobs is None else jobs
        limit = self.limit
        found = self.ask(verb, "--task", task, "--jobs", wanted, "--first", first, "--due", due, "--limit", limit)
        return Enqueued(jobs=found["jobs"], timed=found["timed"], seconds=found["seconds"], due=found["due"])

    def fill(self, task: str, jobs: int | None = None, *, first: int = 0) -> int:
        """Enqueue jobs in whatever way is fastest; gives how many there are."""
        try:
            return self.enqueue("enqueue_bulk", task, jobs, first=first).jobs
        except FailedError as failure:
            if "has no enqueue_bulk" not in str(failure):
                raise
            return self.enqueue("enqueue_one", task, jobs, first=first).jobs

    def start_workers(self, count: int) -> None:
        """Start worker processes, which wait for each other when their imports are done."""
        self.tally.expect(count)
        default = ("-m", "bench.peers", self.peer.adapter(self.engine), "work")
        for number in range(count):
            with (self._folder / f"worker-{number}").open("wb") as log:
                worker = subprocess.Popen(
                    [self._python, *(self.peer.worker or default)],
                    env={**self._environment(), "BENCH_WORKER": str(number)},
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._workers.append(worker)

    def wait(self, jobs: int, *, limit: float | None = None, poll: float = POLL) -> int:
        """Wait until so many jobs are done or the time, which begins with the first, is up; gives how many are."""
        patience = START
        began = time.monotonic()
        is_running = False
        while (done := self.tally.done(self.runs)) < jobs:
            if not is_running and self.tally.done(1):
                is_running, began, patience = True, time.monotonic(), self.limit if limit is None else limit
            if any(worker.poll() is not None for worker in self._workers):
                raise FailedError(f"a worker ended by itself: {self._worker_said()}")
            if time.monotonic() - began > patience:
                if not is_running:
                    raise FailedError(f"no job was run within {START:.0f} s: {self._worker_said()}")
                break
            time.sleep(poll)
        return done

    def memory(self) -> float:
        """The resident memory of the worker processes and all they started, in MiB, but for the bench's own tally."""
        said = subprocess.run(["ps", "-eo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True).stdout
        rows = [tuple(map(int, line.split())) for line in said.splitlines()]
        family = {worker.pid for worker in self._workers}
        # A parent stands before its children nearly always, but not surely: go on until nobody is added.
        while more := {pid for pid, parent, _ in rows if parent in family and pid not in family}:
            family |= more
        return sum(size - _resident(pid, self._folder / "tally") for pid, _, size in rows if pid in family) / 1024

    def settled(self, jobs: int) -> int | None:
        """How many jobs the peer's own books count as succeeded, or None if its adapter cannot tell."""
        try:
            deadline = time.monotonic() + 5
            while (count := int(self.ask("settled", "--jobs", jobs)["settled"])) < jobs:
                if time.monotonic() > deadline:
                    break
        except FailedError as failure:
            if "has no settled" not in str(failure):
                raise
            return None
        return count

    def end_workers(self) -> None:
        for worker in self._workers:
            _end(worker, signal.SIGTERM)
        self._workers.clear()

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE_", "BENCH_"))}
        return {
            **kept,
            "BENCH_URL": self._url,
            "BENCH_ENGINE": self.engine,
            "BENCH_TALLY": str(self._folder / "tally"),
            "BENCH_PARENT": str(os.getpid()),
            "PERDURE_URL": self._url,
            "PYTHONPATH": str(ROOT),
        }

    def _worker_said(self) -> str:
        return _last_line(b"".join(path.read_bytes() for path in self._folder.glob("worker-*")))


def _end(process: subprocess.Popen[bytes], first: signal.Signals = signal.SIGKILL) -> None:
    """End a process that was started here, and what it started: politely, then surely."""
    if process.poll() is None:
        process.send_signal(first)
        try:
            process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            pass  # what follows does not ask
    try:
        # Each has a session of its own, so its group is itself and its children.
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nobody is left of it
    process.wait(FAREWELL)


def _last_line(said: bytes) -> str:
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line]
    return (errors or lines or ["it said nothing"])[-1][:200]


def _shared_memory() -> str | None:
    """Where a file is not written to disk, if the machine has such a place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() and os.access("/dev/shm", os.W_OK) else None


def _resident(pid: int, mapped: Path) -> int:
    """How many KiB of a mapped file a process has in memory; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    except OSError:
        return 0
    found = [place for place, line in enumerate(lines) if line.endswith(str(mapped))]
    sizes = [line.split()[1] for place in found for line in lines[place : place + 6] if line.startswith("Rss:")]
    return sum(map(int, sizes))
