"""The runs of a schedule: the jobs that it made, and their attempts over all of them."""

from __future__ import annotations

from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.model.job import Attempt, Job, JobId
from perdure.model.state import LIVE
from perdure.store import Store
from perdure.store.jobs import CancelAnswer
from perdure.store.reads import JobFilter

_CHUNK = 100


@stepped
def newest_run(store: Store, schedule: str) -> Steps[Job | None]:
    """The job that a schedule made last; None where it made none, or none is kept."""
    found = yield from ask(store.list(JobFilter(schedule=schedule), limit=1))
    return found[0] if found else None


@stepped
def unfinished_run(store: Store, schedule: str) -> Steps[Job | None]:
    """The newest job of a schedule that has not ended."""
    found: list[Job] = []
    for state in sorted(LIVE):
        found += yield from ask(store.list(JobFilter(schedule=schedule, state=state), limit=1))
    return max(found, key=lambda job: job.id, default=None)


@stepped
def attempts_of(store: Store, schedule: str, limit: int) -> Steps[list[tuple[Job, Attempt]]]:
    """The newest attempts over all runs of a schedule, newest first, each with its job."""
    found: list[tuple[Job, Attempt]] = []
    after: JobId | None = None
    while len(found) < limit:
        page = yield from ask(store.list(JobFilter(schedule=schedule), limit=_CHUNK, after=after))
        for job in page:
            attempts = yield from ask(store.history(job.id, limit - len(found)))
            found += [(job, attempt) for attempt in reversed(attempts)]
            if len(found) >= limit:
                break
        if len(page) < _CHUNK:
            break
        after = page[-1].id
    return found[:limit]


@stepped
def cancel_runs(store: Store, schedule: str) -> Steps[list[CancelAnswer]]:
    """Cancel every unfinished run of a schedule, or ask its worker to; the answers."""
    found: list[CancelAnswer] = []
    for state in sorted(LIVE):
        after: JobId | None = None
        while True:
            page = yield from ask(store.list(JobFilter(schedule=schedule, state=state), limit=_CHUNK, after=after))
            if page:
                answers = yield from ask(store.cancel([job.id for job in page], "cancelled"))
                found += [answer for answer in answers if answer in ("cancelled", "asked")]
            if len(page) < _CHUNK:
                break
            after = page[-1].id
    return found
