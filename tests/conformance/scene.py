"""Short words for what the suite does over and over: make jobs, fetch them, end them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec import structs

from perdure.model.failure import Failure
from perdure.model.job import Job, JobId, NewJob, WorkerId, format_id, make_id
from perdure.model.outcome import Outcome
from perdure.model.queue.fairness import WHOLE
from perdure.model.schedule.definition import Definition, Schedule, new_schedule, next_revision
from perdure.model.schedule.fire import Planned, plan
from perdure.store import Store
from perdure.store.jobs import Ended, Want
from perdure.store.schedules import Firing
from perdure.system.clock import VirtualClock

LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


def an_error(message: str = "it broke", kind: str = "ValueError") -> Failure:
    return Failure(type=kind, message=message, lineage=(kind, "Exception"), trace="somewhere", frame="app:handler")


def ended(job: Job, outcome: Outcome, **changes: Any) -> Ended:
    """What a worker commits about a running job; `changes` break the fence."""
    given = {
        "job_id": job.id,
        "attempt": job.attempt,
        "worker": job.worker,
        "task": job.task,
        "outcome": outcome,
        "started_at": job.started_at or job.created_at,
        "ended_at": (job.started_at or job.created_at) + SECOND,
    }
    return Ended(**{**given, **changes})


def success(job: Job, **changes: Any) -> Outcome:
    given: dict[str, Any] = {
        "verb": "succeed",
        "state": "succeeded",
        "attempt": "succeeded",
        "failures": job.failures,
        "recoveries": job.recoveries,
        "lane": job.lane,
        "result": b'"done"',
    }
    return Outcome(**{**given, **changes})


def failure(job: Job, **changes: Any) -> Outcome:
    """A failure that is followed by a retry, ten seconds later unless told otherwise."""
    given: dict[str, Any] = {
        "verb": "fail",
        "state": "waiting",
        "attempt": "failed",
        "reason": "failed",
        "failures": job.failures + 1,
        "recoveries": job.recoveries,
        "lane": "retry",
        "delay": 10 * SECOND,
        "error": an_error(),
    }
    return Outcome(**{**given, **changes})


def death(job: Job, **changes: Any) -> Outcome:
    return failure(job, **{"state": "dead", "reason": "exhausted", "delay": None, **changes})


def a_want(queue: str = "mail", fresh: int = 50, retry: int = 50, **changes: Any) -> Want:
    """What asks for so many jobs of each lane."""
    count = fresh + retry
    share = retry * WHOLE // count if count else 0
    return Want(queue=queue, count=count, retry_share=share, carry=retry * WHOLE - share * count, **changes)


def firing(before: Schedule, planned: Planned, salt: str = "", **changes: Any) -> Firing:
    """The step that a scheduler takes; `changes` make it another one."""
    after = planned.schedule
    given = {
        "name": before.name,
        "replaces": before.revision,
        "schedule": None if after is None else structs.replace(after, revision=next_revision(after, salt)),
        "jobs": tuple(before.job(tick) for tick in planned.ticks),
        "needs_idle": planned.needs_idle,
    }
    return Firing(**{**given, **changes})


class Scene:
    """A store under test, its clock, and the jobs made so far."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.store = store
        self.clock = clock
        self._last_id = 0

    def new_id(self) -> JobId:
        self._last_id = make_id(self.clock.now(), 0, self._last_id)
        return format_id(self._last_id)

    def new_job(self, **changes: Any) -> NewJob:
        return NewJob(**{"id": self.new_id(), "task": "send", "queue": "mail", "args": b"{}", **changes})

    def enqueue(self, **changes: Any) -> JobId:
        return self.store.enqueue([self.new_job(**changes)]).wait()[0]

    def worker(self, name: str = "worker-1", lease: timedelta = LEASE) -> WorkerId:
        worker = WorkerId(name)
        self.store.register(
            worker, host="here", pid=7, queues=("mail",), concurrency=5, version="1.0", lease=lease
        ).wait()
        return worker

    def fetch(self, worker: WorkerId, *, limit: int = 100, queue: str = "mail", **want: Any) -> list[Job]:
        return self.store.fetch(worker, [a_want(queue, **want)], limit).wait().jobs

    def make_retries(self, worker: WorkerId, count: int, **changes: Any) -> list[JobId]:
        """So many jobs ready in the retry lane of their queue; no fresh ones may be ready there."""
        made: list[JobId] = []
        while len(made) < count:
            some = min(1000, count - len(made))
            self.store.enqueue([self.new_job(**changes) for _ in range(some)]).wait()
            jobs = self.fetch(worker, queue=changes.get("queue", "mail"), fresh=some, retry=0, limit=some)
            assert len(jobs) == some
            self.store.commit([ended(job, failure(job, state="ready", delay=0 * SECOND)) for job in jobs]).wait()
            made += [job.id for job in jobs]
        return made

    def running(self, worker: WorkerId | None = None, **changes: Any) -> Job:
        """A job that was just made and fetched; nothing else may be ready in its queue."""
        worker = worker or self.worker()
        job_id = self.enqueue(**changes)
        (job,) = self.fetch(worker, queue=changes.get("queue", "mail"))
        assert job.id == job_id
        return job

    def end(self, job: Job, outcome: Outcome, **changes: Any) -> bool:
        (accepted,) = self.store.commit([ended(job, outcome, **changes)]).wait()
        return accepted

    def dead(self, worker: WorkerId | None = None, error: Failure | None = None, **changes: Any) -> JobId:
        job = self.running(worker, **changes)
        assert self.end(job, death(job, error=error or an_error()))
        return job.id

    def get(self, job_id: JobId) -> Job:
        (job,) = self.store.get([job_id]).wait()
        assert job is not None
        return job

    def schedule(self, name: str = "nightly", **changes: Any) -> str:
        """A schedule that ticks every ten seconds from now, unless told otherwise."""
        given = {"name": name, "task": "send", "args": b"{}", "queue": "mail", "cron": "@every 10s", **changes}
        made = new_schedule(Definition(**given), "operator", self.clock.now())
        assert self.store.put_schedule(made, None).wait()
        return name

    def get_schedule(self, name: str) -> Schedule:
        (found,) = self.store.get_schedules([name]).wait()
        assert found is not None
        return found

    def fire(self) -> list[datetime]:
        """Fire what is due, as a scheduler does; the ticks for which jobs were made."""
        due = self.store.due(100).wait()
        planned = [(one, plan(one, due.now)) for one in due.schedules]
        taken = self.store.fire([firing(one, what) for one, what in planned]).wait() if planned else []
        return [tick for (_, what), is_taken in zip(planned, taken, strict=True) if is_taken for tick in what.ticks]

    def pass_time(self, by: timedelta) -> None:
        self.clock.advance(by)
