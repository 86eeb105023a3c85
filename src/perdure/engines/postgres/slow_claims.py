"""What an open store has measured of statements that old index entries make slow, and how it limits what they read."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from perdure.engines.postgres.claim_ranges import START, QueueRanges, Read, Reading
from perdure.engines.postgres.scan_start import ScanStart
from perdure.engines.postgres.workers import HeldListings
from perdure.model.job import NewJob
from perdure.system.clock import Clock, SystemClock, to_microseconds

AGAIN_AFTER = 1.0
"""After a suspicion of slow claims that was not confirmed, a queue is not suspected again for this many seconds."""


class SlowClaims:
    """Used by all threads and event loops of a store."""

    def __init__(self, *, is_enabled: bool = True, clock: Clock | None = None) -> None:
        self._is_enabled = is_enabled
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self.listings = HeldListings()
        self.waiting, self.ended = ScanStart(is_enabled=is_enabled), ScanStart(is_enabled=is_enabled)
        """Where promote and prune begin to read."""
        self._queues: dict[str, QueueRanges] = {}
        self._cleared: dict[str, float] = {}
        """When claims of a queue were last found not to be slow."""

    def __contains__(self, queue: str) -> bool:
        return queue in self._queues

    def next(self, queue: str) -> Reading | None:
        """What the next claim of a queue is to read; None: it is not slow, and reads from the beginning."""
        if queue not in self._queues:
            return None
        with self._lock:
            ranges = self._queues.get(queue)
            return None if ranges is None else ranges.next(self._clock.monotonic())

    def suspect(self, queue: str) -> None:
        """A claim of a queue took long: measure the next ones."""
        with self._lock:
            if self._is_enabled and queue not in self._queues:
                at = self._clock.monotonic()
                if at - self._cleared.get(queue, float("-inf")) >= AGAIN_AFTER:
                    self._queues[queue] = QueueRanges()

    def observe(self, queue: str, reading: Reading, read: Read) -> None:
        """Take in what a claim found, once it is committed."""
        with self._lock:
            ranges, at = self._queues.get(queue), self._clock.monotonic()
            if ranges is not None and not ranges.observe(reading, read, at):
                del self._queues[queue]
                self._cleared[queue] = at

    def enqueued(self, jobs: Sequence[NewJob]) -> None:
        """Jobs were made; those with a run_at of their own may come before others that were claimed."""
        if self._queues:
            times = [job.run_at for job in jobs if job.run_at is not None]
            if times:
                self.moved_back(to_microseconds(min(times)))

    def moved_back(self, run_at: int | None = None) -> None:
        """Jobs from this run_at on, or of any, were put before others that may have been claimed."""
        if self._queues:
            with self._lock:
                for ranges in self._queues.values():
                    ranges.moved_back(START[0] if run_at is None else run_at)
