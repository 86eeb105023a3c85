"""Changes jobs that have not started: change."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from perdure.engines.postgres.rows import from_duration, from_ids, from_moment
from perdure.engines.postgres.slow_claims import SlowClaims
from perdure.engines.postgres.verb import Script, Step, Verb
from perdure.model.change import Change
from perdure.model.job import JobId
from perdure.store.jobs import ChangeAnswer


def change(ids: Sequence[JobId], change: Change, slow: SlowClaims) -> Verb[list[ChangeAnswer]]:
    """Make waiting and ready jobs as the change says."""
    return Verb(lambda: _change(ids, change, slow))


def _change(ids: Sequence[JobId], change: Change, slow: SlowClaims) -> Script[list[ChangeAnswer]]:
    values = {
        "ids": from_ids(ids),
        "delay": from_duration(change.delay),
        "run_at": None if change.delay is not None else from_moment(change.run_at),
        "priority": change.priority,
        "queue": change.queue,
        "has_limit": change.max_attempts is not UNSET,
        "max_attempts": None if change.max_attempts is UNSET else change.max_attempts,
        "args": change.args,
        "delivery": change.delivery,
    }
    rows = yield Step("change", values)
    # A ready job keeps its run_at in its new queue or priority, where later ones may have been claimed.
    slow.moved_back()
    found: dict[str, ChangeAnswer] = {job_id: "changed" if is_changed else "wrong state" for job_id, is_changed in rows}
    return [found.get(job_id, "not found") for job_id in ids]
