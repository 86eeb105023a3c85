"""Gives jobs back at once whose task this worker does not know, so that they do not wait here for a free slot."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from random import Random

from perdure.model.decide import decide
from perdure.model.event import AttemptEnded
from perdure.model.job import Job
from perdure.model.outcome import TaskUnknown
from perdure.runtime.handler import Registry
from perdure.system.clock import Clock

_task_of = attrgetter("task")


class UnknownTasks:
    """Tells the jobs that this worker can run from those that it cannot."""

    def __init__(self, *, registry: Registry, clock: Clock, random: Random) -> None:
        self._registry = registry
        self._clock = clock
        self._random = random

    def split(self, jobs: list[Job]) -> tuple[list[Job], Sequence[AttemptEnded]]:
        """The jobs whose task is known, and the ends of the attempts of the others."""
        unknown = {task for task in set(map(_task_of, jobs)) if self._registry.handler(task) is None}
        if not unknown:
            return jobs, ()
        known = [job for job in jobs if job.task not in unknown]
        return known, [self._ended(job) for job in jobs if job.task in unknown]

    def _ended(self, job: Job) -> AttemptEnded:
        now, policy = self._clock.now(), self._registry.policy(job)
        outcome = decide(job, TaskUnknown(), policy, now, self._random)
        return AttemptEnded(job=job, outcome=outcome, limit=policy.limit, started_at=now, ended_at=now)
