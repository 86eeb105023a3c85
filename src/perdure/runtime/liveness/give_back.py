"""Gives back the jobs of a worker that ends without its event loop; works in any thread, through the store.

`decide` says what follows for each job: those that no slot has taken go back in line with nothing counted. What
happens to those that had started depends on why the worker ends. At last the worker is struck off, so that other
workers find the rest at once and need not wait for the end of its lease.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

import msgspec

from perdure.model.decide import decide
from perdure.model.job import Job, WorkerId
from perdure.model.outcome import Ending, ShutDown, Vanished
from perdure.runtime.buffer import Buffer
from perdure.runtime.committer import Committer, to_ended
from perdure.runtime.handler import Registry
from perdure.runtime.in_flight import Held, Holding
from perdure.store import Store
from perdure.store.jobs import Ended
from perdure.system.clock import Clock

Cause = Literal["stopped", "blocked", "lost"]
"""Why the worker ends: it was told to stop · a handler blocks its event loop · its loop or a part of it has ended."""

_BATCH = 500


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs of the worker."""

    worker: WorkerId | None = None
    released: int = 0
    """How many went back in line."""
    left: int = 0
    """How many are left to other workers, which treat them as lost."""


class GiveBack:
    """The jobs of one worker, and how to give them back."""

    def __init__(
        self,
        *,
        store: Store,
        registry: Registry,
        clock: Clock,
        random: Random,
        held: Held,
        buffer: Buffer,
        committer: Committer,
        end_lease: Callable[[], WorkerId | None],
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._random = random
        self._held = held
        self._buffer = buffer
        self._committer = committer
        self._end_lease = end_lease

    def __call__(self, cause: Cause, culprit: Holding | None = None, detail: str = "") -> Given:
        """Give back what can be given back. Raises what the store raises; the lease is not renewed in any case."""
        # First of all: from here on no slot starts a job, so what is in the buffer now has not started.
        worker = self._end_lease()
        if worker is None:
            return Given()
        waiting = {id(holding) for holding in self._buffer.waiting()}
        finished = self._committer.uncommitted()
        fences = {event.job.fence for event in finished}
        ended = [to_ended(event) for event in finished]
        left = 0
        for holding in self._held.all():
            job = holding.job
            if job.worker != worker or job.fence in fences:
                continue
            has_started = id(holding) not in waiting
            ending = _ending(cause, has_started, is_culprit=holding is culprit, detail=detail)
            if ending is None:
                left += 1
            else:
                ended.append(self._ended(job, ending))
        for first in range(0, len(ended), _BATCH):
            self._store.commit(ended[first : first + _BATCH]).wait()
        self._store.deregister(worker).wait()
        return Given(worker=worker, released=len(ended) - len(finished), left=left)

    def _ended(self, job: Job, ending: Ending) -> Ended:
        assert job.worker is not None, "a fetched job has a worker"
        now = self._clock.now()
        outcome = decide(job, ending, self._registry.policy(job), now, self._random)
        return Ended(
            job_id=job.id,
            attempt=job.attempt,
            worker=job.worker,
            task=job.task,
            outcome=outcome,
            started_at=job.started_at or now,
            ended_at=now,
        )


def _ending(cause: Cause, has_started: bool, *, is_culprit: bool, detail: str) -> Ending | None:
    """How the attempt of a held job ends; None where other workers are to find it without a living worker."""
    if not has_started:
        return ShutDown(has_started=False)
    if is_culprit:
        # [INV-8] Lost rather than timed out: its next attempt must not run in a worker's own process.
        return Vanished(detail=detail)
    # A loop that ended does not tell which of the running jobs ended it: all of them are suspects.
    return None if cause == "lost" else ShutDown(has_started=True)
