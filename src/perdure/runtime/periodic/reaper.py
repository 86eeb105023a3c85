"""Finds the jobs of vanished workers and lets `decide` say what follows; any number of workers may reap at once.

With a LeaseWatch, which every running worker has, the reaper measures leases by its own monotonic clock. Without one
the store's clock decides, which is right for a clock that cannot jump, such as the one of a test.

Each job is committed with the vanished worker's id in its fence, so that of two reapers, or a reaper and a worker
that was only slow, exactly one is heard.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from perdure.model.decide import decide
from perdure.model.event import AttemptEnded, Observer, WorkerReaped
from perdure.model.job import Job
from perdure.model.outcome import Vanished
from perdure.runtime.committer import to_ended
from perdure.runtime.handler import Registry, is_bystander
from perdure.runtime.liveness.lease_watch import LeaseWatch
from perdure.runtime.occurrence import with_next_ticks
from perdure.store import Store
from perdure.system.clock import Clock

_BATCH = 500
_SOON = 0.05
"""The shortest pause before a look at a lease that is about to end, in seconds."""


class Reaper:
    """Calls reap and commits what follows."""

    def __init__(
        self,
        *,
        store: Store,
        registry: Registry,
        clock: Clock,
        random: Random,
        observer: Observer,
        every: float,
        watch: LeaseWatch | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._random = random
        self._observer = observer
        self._every = every
        self._watch = watch

    async def step(self) -> float:
        """Decide about one batch of orphaned jobs; the seconds until the next look."""
        watch = self._watch
        reaped = await self._store.reap(_BATCH, None if watch is None else watch.silent())
        if watch is not None:
            watch.look(reaped.renewals)
        finished = [self._decide(job) for job in reaped.jobs]
        accepted = await self._store.commit([to_ended(one) for one in finished]) if finished else []
        await self._tell([one for one, is_accepted in zip(finished, accepted, strict=True) if is_accepted])
        if len(reaped.jobs) == _BATCH:
            return 0.0
        return self._every if watch is None else min(self._every, max(watch.next_in(), _SOON))

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
