"""A worker of the harness: its slots, its buffer, and the fractions that it carries."""

from __future__ import annotations

from collections import deque

from perdure.model.job import Job, WorkerId
from perdure.runtime.claims import Claims


class Crew:
    """One worker of the harness: its slots, what it holds in advance, and the claims that it carries fractions in."""

    def __init__(self, worker: WorkerId, queues: tuple[str, ...] | None, *, slots: int, prefetch: int, batch: int):
        self.worker = worker
        self.is_usual = False
        """Whether it is the one that serves when the test adds none: it does not wait for a poll."""
        self.queues = queues
        self.slots = slots
        self.prefetch = prefetch
        self.batch = batch
        self.buffer: deque[Job] = deque()
        self.busy = 0
        self.claims: dict[tuple[str, ...], Claims] = {}
        self.is_registered = False

    @property
    def room(self) -> int:
        """How many jobs to ask for, by the fetcher's rule: none while the buffer is well filled."""
        held = len(self.buffer)
        return 0 if held > self.prefetch // 2 else min(self.batch, self.slots - self.busy + self.prefetch - held)
