"""The tally: a file in shared memory where handlers note when each job ran, at no cost of a round trip.

Every job has a number, which is its argument. A handler writes the moment into the place of that number; the harness
reads the same memory. So a drain is timed alike for every peer: from the first start to the last end, whatever process
ran it.
It runs in the environments of the peers, so it needs the standard library only.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

HEADER = 64
_EXPECTED = 0
_ARRIVED = 1
MOST_WORKERS = 32
PATIENCE = 30.0


class Tally:
    """Moments (of the machine's monotonic clock) and counts by job number; zero where nothing happened yet."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.jobs = jobs = (len(self._map) - HEADER) // 26
        whole = memoryview(self._map)
        self._header = whole[:HEADER]
        self.sent = whole[HEADER : HEADER + 8 * jobs].cast("d")
        self.first = whole[HEADER + 8 * jobs : HEADER + 16 * jobs].cast("d")
        self.last = whole[HEADER + 16 * jobs : HEADER + 24 * jobs].cast("d")
        self.runs = whole[HEADER + 24 * jobs : HEADER + 25 * jobs]
        self.worker = whole[HEADER + 25 * jobs : HEADER + 26 * jobs]

    @classmethod
    def make(cls, path: Path, jobs: int) -> Tally:
        """An empty one for so many jobs."""
        with path.open("wb") as file:
            file.truncate(HEADER + 26 * jobs)
        return cls(path)

    def clear(self) -> None:
        """Forget everything, for another turn with the same numbers."""
        self._map[:] = bytes(len(self._map))

    def expect(self, workers: int) -> None:
        """Say how many worker processes `arrive` waits for."""
        for place in range(MOST_WORKERS):
            self._header[_ARRIVED + place] = 0
        self._header[_EXPECTED] = workers

    def arrive(self, worker: int) -> None:
        """Wait, imports done, until all worker processes have come as far: one must not drain what two should share."""
        self._header[_ARRIVED + worker] = 1
        deadline = time.monotonic() + PATIENCE
        while sum(self._header[_ARRIVED:]) < self._header[_EXPECTED] and time.monotonic() < deadline:
            time.sleep(0.001)

    def done(self, runs: int = 1) -> int:
        """How many jobs have run so often."""
        seen = bytes(self.runs)
        return self.jobs - sum(seen.count(fewer) for fewer in range(runs))

    def close(self) -> None:
        for view in (self.sent, self.first, self.last, self.runs, self.worker, self._header):
            view.release()


def ours() -> Tally:
    """The tally of this process, as the harness named it."""
    return Tally(Path(os.environ["BENCH_TALLY"]))
