"""What becomes of a schedule when the clock is set back: it goes on, and does not wait until its last tick comes again.

A tick fires once, so a schedule whose newest tick lies in the future would be silent until the clock has passed it.
That is right for a rare schedule: one that fired at three o'clock today does not fire again when it is three o'clock
once more. A schedule that would miss ticks of its usual rhythm begins anew from now instead. The moments that come a
second time are then new ticks.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from perdure.errors import PerdureError
from perdure.model.schedule.definition import Schedule, moved, next_revision
from perdure.model.schedule.fire import LOOK_AGAIN, ON_TIME, RAREST_CHECK


def set_back(schedule: Schedule, now: datetime) -> Schedule:
    """The schedule as it goes on from now; the very same one where the clock was not set back far enough to matter."""
    if schedule.is_paused or schedule.next_at is None:
        return schedule
    if schedule.stopped_at is not None or schedule.problem is not None:
        # `next_at` is when it is looked at again, at most so far ahead.
        longest = LOOK_AGAIN if schedule.stopped_at is None else RAREST_CHECK
        if schedule.next_at - now <= longest + ON_TIME:
            return schedule
        changed = msgspec.structs.replace(schedule, next_at=now)
        return msgspec.structs.replace(changed, revision=next_revision(changed))
    ahead = schedule.since - now
    if not schedule.definition.is_recurring or ahead <= ON_TIME or schedule.next_at - schedule.since >= ahead:
        return schedule
    # The ticks of `@every` are counted from its creation, and there are none before it.
    created_at = min(schedule.created_at, now)
    again = msgspec.structs.replace(schedule, created_at=created_at, set_backs=schedule.set_backs + 1)
    try:
        return moved(again, now)
    except PerdureError:
        return schedule  # its rule cannot be worked out here; another worker may be able to
