"""The ledger outside the store: what processes did, one line per event, written so that a kill cannot unsay it.

Every process appends to a file of its own, each event with a single `write()` to a descriptor opened with O_APPEND.
What was written is in the kernel's hands and survives SIGKILL. A kill may tear the last line of a file; such a line is
no event.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LEDGER = "PERDURE_TEST_LEDGER"
"""The environment variable with the directory of the ledger."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One thing that a process did.

    Producers write `enq_invoke` and `enq_ok`, handlers `start`, `effect` and `end`, the driver `kill`. An `enq_invoke`
    without an `enq_ok` is unknown: the job may exist or not.
    """

    event: str
    at: float
    """Seconds of the clock that never jumps, the same in all processes of the machine."""
    wall: float
    pid: int
    job: str = ""
    """The job's id; for an invocation that has none yet, the producer's own key."""
    attempt: int = 0
    key: str = ""
    """The producer's name for what it asked for: it connects invoke, ok and the job's first argument."""
    batch: str = ""
    limit: int = 0
    """On `enq_invoke`: the most runs that the job may have."""
    delivery: str = "at_least_once"
    note: str = ""


class Ledger:
    """The writing end, in one process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pid = 0
        self._file = -1

    @classmethod
    def of_environment(cls) -> Ledger:
        """The ledger that the driver named."""
        return cls(Path(os.environ[LEDGER]))

    def write(self, event: str, **fields: Any) -> None:
        """Add one event; it is on record when this returns."""
        pid = os.getpid()
        if pid != self._pid:
            # A forked child must not share its parent's file: two writers could tear each other's last line.
            self._open(pid)
        line = json.dumps(asdict(Event(event=event, at=time.monotonic(), wall=time.time(), pid=pid, **fields)))
        self._write(line.encode() + b"\n")

    def _open(self, pid: int) -> None:
        if self._file >= 0 and pid == self._pid:
            os.close(self._file)
        name = f"{pid}-{time.monotonic_ns()}.jsonl"
        self._file = os.open(self._directory / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._pid = pid

    def _write(self, line: bytes) -> None:
        for _ in range(2):
            try:
                if os.write(self._file, line) == len(line):
                    return
            except OSError as error:
                if error.errno != errno.EFBIG:
                    raise
            # A test limits the size of files to make the disk look full. The ledger goes on in a new file.
            self._open(self._pid)
        raise OSError(errno.EFBIG, "the ledger has no room for one line")


def read(directory: Path, pid: int | None = None) -> list[Event]:
    """Every event on record, of all processes or of one, in the order in which they happened."""
    files = sorted(directory.glob("*.jsonl" if pid is None else f"{pid}-*.jsonl"))
    events = [event for path in files for event in _events(path.read_bytes())]
    return sorted(events, key=lambda event: event.at)


def of_kind(events: Iterable[Event], *kinds: str) -> list[Event]:
    """The events of these kinds."""
    return [event for event in events if event.event in kinds]


def _events(written: bytes) -> list[Event]:
    *lines, _torn = written.split(b"\n")
    return [Event(**json.loads(line)) for line in lines]
