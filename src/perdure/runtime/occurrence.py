"""When the schedules of jobs that died tick next: told with a job's end, so that nobody takes it for the schedule's."""

from __future__ import annotations

import msgspec

from perdure.model.event import AttemptEnded
from perdure.runtime.backoff import is_outage
from perdure.store import Store


async def with_next_ticks(store: Store, ended: list[AttemptEnded]) -> list[AttemptEnded]:
    """The events, with the next tick where a job died that a recurring schedule made, as far as the store can tell."""
    names = {event.job.schedule for event in ended if event.job.schedule and event.outcome.state == "dead"}
    if not names:
        return ended
    try:
        found = await store.get_schedules(sorted(name for name in names if name))
    except Exception as error:
        if not is_outage(error):
            raise
        return ended
    recurring = (one for one in found if one is not None and one.definition.is_recurring and one.standing == "active")
    ticks = {one.name: one.next_at for one in recurring if one.next_at is not None}
    return [
        msgspec.structs.replace(event, next_tick_at=ticks[event.job.schedule]) if event.job.schedule in ticks else event
        for event in ended
    ]
