"""A store in a known state: jobs that wait, run, died of known errors, and workers with known leases."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

from perdure.engines.opener import open_store
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId, NewJob, WorkerId, format_id, make_id
from perdure.model.outcome import Outcome, Reason
from perdure.store.jobs import Ended, Want
from perdure.system.clock import VirtualClock

LEASE = timedelta(seconds=30)


class Scene:
    """Puts jobs into states through the store's own verbs."""

    def __init__(self, path: Path, clock: VirtualClock | None = None) -> None:
        self.url = f"sqlite:///{path}"
        self.clock = clock or VirtualClock()
        self.store = open_store(self.url, clock=self.clock)
        self._numbers = itertools.count(1)
        self._last = 0
        self.worker = WorkerId("00000000-0000-7000-8000-00000000aaaa")

    def close(self) -> None:
        self.store.close()

    def enqueue(
        self,
        task: str = "send",
        queue: str = "default",
        *,
        delay: timedelta | None = None,
        args: bytes = b"{}",
        unique: str | None = None,
        priority: int = 0,
    ) -> JobId:
        self._last = make_id(self.clock.now(), next(self._numbers), self._last)
        job_id = format_id(self._last)
        new = NewJob(id=job_id, task=task, queue=queue, args=args, delay=delay, unique=unique, priority=priority)
        return self.store.enqueue([new]).wait()[0]

    def register(self, queues: tuple[str, ...] = ("default",), lease: timedelta = LEASE) -> None:
        self.store.register(
            self.worker, host="somewhere", pid=7, queues=queues, concurrency=5, version="1", lease=lease
        ).wait()

    def run(self, queue: str = "default", count: int = 1) -> list[Job]:
        """Jobs claimed by the worker, which stay running."""
        self.register((queue,))
        return self.store.fetch(self.worker, [Want(queue=queue, count=count)], count).wait().jobs

    def end(self, job: Job, outcome: Outcome) -> None:
        now = self.clock.now()
        ended = Ended(
            job_id=job.id,
            attempt=job.attempt,
            worker=self.worker,
            task=job.task,
            outcome=outcome,
            started_at=now,
            ended_at=now,
        )
        assert self.store.commit([ended]).wait() == [True]

    def dead(
        self,
        task: str = "send",
        queue: str = "default",
        *,
        error: str = "TimeoutError",
        message: str = "too slow",
        reason: Reason = "exhausted",
        unique: str | None = None,
        args: bytes = b"{}",
        sink: str | None = None,
    ) -> JobId:
        job_id = self.enqueue(task, queue, unique=unique, args=args, priority=100)
        self.die(job_id, queue, error=error, message=message, reason=reason, sink=sink)
        return job_id

    def die(
        self,
        job_id: JobId,
        queue: str = "default",
        *,
        error: str = "TimeoutError",
        message: str = "too slow",
        reason: Reason = "exhausted",
        sink: str | None = None,
    ) -> None:
        """Let the queue's next job, which must be this one, die."""
        [job] = self.run(queue)
        assert job.id == job_id
        failure = Failure(type=error, message=message, lineage=(error,), trace='  File "x.py", line 1\n')
        outcome = Outcome(
            verb="bury",
            state="dead",
            attempt="failed",
            reason=reason,
            failures=job.failures + 1,
            recoveries=0,
            lane="retry",
            error=failure,
            sink=sink,
        )
        self.end(job, outcome)

    def succeeded(self, task: str = "send", queue: str = "default") -> JobId:
        job_id = self.enqueue(task, queue, priority=100)
        [job] = self.run(queue)
        outcome = Outcome(
            verb="succeed",
            state="succeeded",
            attempt="succeeded",
            failures=0,
            recoveries=0,
            lane=job.lane,
            result=b'"done"',
        )
        self.end(job, outcome)
        return job_id

    def failing(self, task: str = "send", delay: timedelta = timedelta(minutes=5)) -> JobId:
        """A job that failed once and waits for its retry."""
        job_id = self.enqueue(task, priority=100)
        [job] = self.run()
        self.fail(job, delay)
        return job_id

    def fail(self, job: Job, delay: timedelta = timedelta(minutes=5)) -> None:
        """Let a running job fail, and wait for its retry."""
        outcome = Outcome(
            verb="fail",
            state="waiting",
            attempt="failed",
            reason="failed",
            failures=1,
            recoveries=0,
            lane="retry",
            delay=delay,
            error=Failure(type="ConnectionError", message="refused", lineage=("ConnectionError",)),
        )
        self.end(job, outcome)

    def state(self, job_id: str) -> str:
        [job] = self.store.get([JobId(job_id)]).wait()
        assert job is not None
        return job.state
