"""Claims parked jobs of tasks that this worker knows, so that they wait no longer than they must.

In a deployment with several versions, a worker that does not know a task parks its jobs. They come back by themselves,
but may meet the same worker again. The unparker looks twice a second for parked jobs of its own tasks while there is
room for them, and claims them where they wait. Where nothing is parked this is one small read.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure.model.job import Job
from perdure.model.queue.fairness import Fairness
from perdure.runtime.handler import Registry
from perdure.runtime.membership import Membership
from perdure.runtime.periodic.loop import NotAsked
from perdure.runtime.plan import Plan
from perdure.store.jobs import JobStore, Want

EVERY = 0.5
"""How many seconds pass between two looks; a job must start within two seconds of a suitable worker being idle."""
SOON = 0.02
"""The same while more is parked than there was room for."""
_LARGEST_BATCH = 1000


class Unparker:
    """Calls unpark."""

    def __init__(
        self,
        *,
        store: JobStore,
        membership: Membership,
        plan: Plan,
        registry: Registry,
        fairness: Callable[[str], Fairness],
        room: Callable[[], int],
        deliver: Callable[[list[Job]], None],
    ) -> None:
        """`room` tells how many more jobs the worker may claim."""
        self._store = store
        self._membership = membership
        self._queues = tuple(plan.queues)
        self._registry = registry
        self._fairness = fairness
        self._deliver = deliver
        self._room = room
        self._may_have_more = False

    async def step(self) -> float:
        """Claim what is parked, as far as there is room; the seconds until the next look."""
        worker, room = self._membership.id, min(self._room(), _LARGEST_BATCH)
        if worker is None or room <= 0 or not self._membership.is_trusted():
            return NotAsked(SOON if self._may_have_more else EVERY)
        wants = [self._want(queue, room) for queue in self._queues]
        jobs = await self._store.unpark(worker, wants, self._registry.task_names(), room)
        self._may_have_more = len(jobs) == room
        if jobs:
            self._deliver(jobs)
        return SOON if self._may_have_more else EVERY

    def _want(self, queue: str, count: int) -> Want:
        fairness = self._fairness(queue)
        return Want(
            queue=queue,
            count=count,
            max_retries_running=fairness.max_retries_running,
            concurrency=fairness.concurrency,
        )
