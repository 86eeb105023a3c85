"""When the schedules of jobs that died tick next: told with a job's end, so that nobody takes it for the schedule's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from perdure.errors import EngineError
from perdure.model.job import Job
from perdure.model.outcome import Outcome
from perdure.store import Store


async def next_ticks(store: Store, ended: Iterable[tuple[Job, Outcome]]) -> Mapping[str, datetime]:
    """The next tick of each recurring schedule of which a job died; none when the store cannot tell."""
    names = sorted({job.schedule for job, outcome in ended if job.schedule and outcome.state == "dead"})
    if not names:
        return {}
    try:
        found = await store.get_schedules(names)
    except EngineError:
        return {}
    recurring = (one for one in found if one is not None and one.definition.is_recurring and one.standing == "active")
    return {one.name: one.next_at for one in recurring if one.next_at is not None}
