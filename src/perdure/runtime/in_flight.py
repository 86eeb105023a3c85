"""What a worker holds at the moment: every job from its claim to its durable commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

import msgspec

from perdure.model.event import AttemptEnded
from perdure.model.job import Job, JobId

Interrupt = Literal["cancel", "shutdown", "lease"]
"""Why a running attempt is broken off: an operator cancelled it · the worker stops · the worker's lease is lost."""


class Holding(msgspec.Struct, eq=False):
    """One job in this worker's hands."""

    job: Job
    runner: asyncio.Task[None] | None = None
    """The slot that runs it, while one does."""
    interrupt: Interrupt | None = None

    def is_broken_off(self) -> bool:
        """Whether someone has broken the attempt off."""
        return self.interrupt is not None

    def break_off(self, why: Interrupt) -> bool:
        """Break the attempt off, once; whether it was running."""
        if self.interrupt is None:
            self.interrupt = why
            if self.runner is not None:
                self.runner.cancel()
        return self.runner is not None


class Held:
    """All holdings of a worker; only the event loop's thread changes it."""

    def __init__(self) -> None:
        self._holdings: dict[JobId, Holding] = {}

    def __len__(self) -> int:
        return len(self._holdings)

    def __contains__(self, fence: object) -> bool:
        assert isinstance(fence, tuple)
        holding = self._holdings.get(fence[0])
        return holding is not None and holding.job.attempt == fence[1]

    def add(self, jobs: Sequence[Job]) -> list[Holding]:
        holdings = [Holding(job) for job in jobs]
        self._holdings.update({holding.job.id: holding for holding in holdings})
        return holdings

    def remove(self, job: Job) -> None:
        holding = self._holdings.get(job.id)
        if holding is not None and holding.job.attempt == job.attempt:
            del self._holdings[job.id]

    def remove_all(self, ended: Sequence[AttemptEnded]) -> None:
        holdings = self._holdings
        for one in ended:
            job = one.job
            holding = holdings.pop(job.id, None)
            if holding is not None and holding.job is not job and holding.job.attempt != job.attempt:
                holdings[job.id] = holding  # a newer attempt of it has come meanwhile

    def get(self, job_id: JobId) -> Holding | None:
        return self._holdings.get(job_id)

    def all(self) -> list[Holding]:
        return list(self._holdings.values())
