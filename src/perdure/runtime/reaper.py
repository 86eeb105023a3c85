"""Finds the jobs of vanished workers and lets `decide` say what follows; any number of workers may reap at once.

Each job is committed with the vanished worker's id in its fence, so that of two reapers, or a reaper and a worker
that was only slow, exactly one is heard.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from perdure.clock import Clock
from perdure.model.decide import decide
from perdure.model.event import AttemptEnded, Observer, WorkerReaped
from perdure.model.job import Job
from perdure.model.outcome import Vanished
from perdure.runtime.committer import to_ended
from perdure.runtime.handler import Registry, is_bystander
from perdure.runtime.occurrence import with_next_ticks
from perdure.store import Store

_BATCH = 500


class Reaper:
    """Calls reap and commits what follows."""

    def __init__(
        self, *, store: Store, registry: Registry, clock: Clock, random: Random, observer: Observer, every: float
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._random = random
        self._observer = observer
        self._every = every

    async def step(self) -> float:
        """Decide about one batch of orphaned jobs; the seconds until the next look."""
        reaped = await self._store.reap(_BATCH)
        finished = [self._decide(job) for job in reaped.jobs]
        accepted = await self._store.commit([to_ended(one) for one in finished]) if finished else []
        await self._tell([one for one, is_accepted in zip(finished, accepted, strict=True) if is_accepted])
        return 0.0 if len(reaped.jobs) == _BATCH else self._every

    def _decide(self, job: Job) -> AttemptEnded:
        now = self._clock.now()
        policy = self._registry.policy(job)
        ending = Vanished(
            detail="its worker vanished: the lease ran out without a word",
            has_started=job.started_at is not None,
            is_bystander=is_bystander(job, self._registry.handler(job.task)),
        )
        return AttemptEnded(
            job=job,
            outcome=decide(job, ending, policy, now, self._random),
            limit=policy.limit,
            started_at=job.started_at or now,
            ended_at=now,
        )

    async def _tell(self, finished: list[AttemptEnded]) -> None:
        for worker, jobs in Counter(one.job.worker for one in finished).items():
            self._observer.tell(WorkerReaped(worker=str(worker), jobs=jobs))
        for one in await with_next_ticks(self._store, finished):
            self._observer.tell(one)
