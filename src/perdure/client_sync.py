"""The blocking client: what operators and programs ask of jobs, queues and workers, and do to them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Unpack

from perdure.admin import forwards, groups, inspect, operate, replay, schedules, tune
from perdure.admin.inspect import Page, Stats
from perdure.admin.operate import CancelResult
from perdure.admin.replay import Rate, Replayed
from perdure.admin.schedules import ScheduleOptions
from perdure.admin.selection import Filters
from perdure.model.change import Changes, make_change
from perdure.model.event import Observer
from perdure.model.forward import Forward
from perdure.model.job import Attempt, Job, JobId
from perdure.model.queue.settings import Cap, QueueSettings
from perdure.model.schedule.definition import Schedule
from perdure.store import Store
from perdure.store.reads import ErrorGroup, QueueInfo
from perdure.store.workers import WorkerInfo
from perdure.text.duration import Duration


class Client:
    """Asks and acts, blocking until the answer is there; safe to share between threads.

    The filters are `state`, `task`, `queue`, `error` (a part of the last error), `group` (an error group's
    fingerprint), `reason`, `schedule`, `forward` (how far that is), `before` and `after` (a datetime, ISO text, or how
    long ago: `"1h"`).
    """

    def __init__(self, store: Store, observer: Observer | None = None) -> None:
        self._store = store
        self._observer = observer

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the store open: it belongs to the app."""

    def get(self, job_id: str) -> Job:
        """The job with this id; raises JobNotFound.

        A job that was made with a schedule is its unfinished run, or waits for its next one, under its own id.
        """
        return inspect.get(self._store, job_id).wait()

    def history(self, job_id: str, limit: int = 100) -> builtins.list[Attempt]:
        """One record per attempt, oldest first, at most `limit` of the newest; raises JobNotFound."""
        return inspect.history(self._store, job_id, limit).wait()

    def list(self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[Filters]) -> Page[Job]:
        """A page of matching jobs, newest first; its `next_cursor` asks for the page after it."""
        return inspect.list(self._store, filters, limit=limit, cursor=cursor).wait()

    def count(self, **filters: Unpack[Filters]) -> int:
        """How many jobs match."""
        return inspect.count(self._store, filters).wait()

    def cancel(self, job_id: str) -> CancelResult:
        """Cancel a job: `cancelled`, `already cancelled`, or `asked` (its worker is to stop it).

        Raises JobNotFound, and WrongState when the job has ended otherwise.
        """
        return operate.cancel(self._store, job_id).wait()

    def change(self, job_id: str, **changes: Unpack[Changes]) -> Job:
        """Change a waiting or ready job, and give it as it then is; what is not named stays.

        `delay` or `run_at`, `priority`, `queue`, `max_attempts` or `max_retries`; `unset=["max_attempts"]` takes the
        job's own limit back. Raises JobNotFound, and WrongState when the job runs or has ended.
        """
        return operate.change(self._store, job_id, make_change(**changes)).wait()

    def retry(self, job_id: str) -> None:
        """Make a waiting, dead or cancelled job ready now; for the latter two failures start again at 0.

        Raises JobNotFound, WrongState, and Refused when a live job has its unique key.
        """
        operate.retry(self._store, job_id, self._observer).wait()

    def dead_letters(self, *, limit: int = 50, cursor: str | None = None, **filters: Unpack[Filters]) -> Page[Job]:
        """A page of matching dead jobs, newest first."""
        return inspect.dead_letters(self._store, filters, limit=limit, cursor=cursor).wait()

    def groups(self, *, limit: int = 50, **filters: Unpack[Filters]) -> builtins.list[ErrorGroup]:
        """The dead jobs grouped by how they failed, largest group first."""
        return groups.groups(self._store, filters, limit=limit).wait()

    def replay(
        self,
        *job_ids: str,
        rate: Rate | None = None,
        canary: int | None = None,
        dry_run: bool = False,
        **filters: Unpack[Filters],
    ) -> Replayed:
        """Put dead jobs back by ids or by filters, oldest first; `state="dead"` alone means all of them.

        `rate="50/s"` spaces them, `canary=10` puts back the first ten only, `dry_run` only counts. Attempts
        stay in the history, failures start again at 0.
        """
        return replay.replay(self._store, job_ids, filters, rate=rate, canary=canary, dry_run=dry_run).wait()

    def discard(self, *job_ids: str, dry_run: bool = False, **filters: Unpack[Filters]) -> int:
        """Dismiss dead jobs by ids or by filters; they end cancelled, reason `discarded`. Gives how many."""
        return operate.discard(self._store, job_ids, filters, dry_run=dry_run).wait()

    def forward(self, *job_ids: str, **filters: Unpack[Filters]) -> int:
        """Have dead jobs handed to their sink now, by ids or by filters; how many are due. Forwarded ones stay so."""
        return forwards.forward(self._store, job_ids, filters).wait()

    def forwards(self, *job_ids: str) -> dict[JobId, Forward]:
        """How far the forwarding of these jobs is; those that are not to be forwarded are left out."""
        return forwards.forwards(self._store, job_ids).wait()

    def queues(self) -> builtins.list[QueueInfo]:
        """Every queue that has a job, a pause or settings, by name."""
        return inspect.queues(self._store).wait()

    def pause(
        self,
        queue: str,
        reason: str | None = None,
        *,
        until: datetime | str | None = None,
        duration: Duration | None = None,
    ) -> bool:
        """Stop fetching from a queue; whether that changed anything.

        With `until` or `duration="10m"` the pause ends by itself, by the store's clock.
        """
        return operate.pause(self._store, queue, reason, until=until, duration=duration).wait()

    def resume(self, queue: str) -> bool:
        """Fetch from a queue again; whether that changed anything."""
        return operate.resume(self._store, queue).wait()

    def configure(
        self,
        queue: str,
        *,
        retry_share: float | None = None,
        strict: bool | None = None,
        max_retries_running: Cap | None = None,
        concurrency: Cap | None = None,
        unset: Sequence[str] = (),
    ) -> QueueSettings:
        """Set what workers follow within about a second, over what code and configuration say; what is now set.

        A limit of `"none"` is explicitly none; what is named in `unset` is taken back; what is not given stays.
        """
        return tune.configure(
            self._store,
            queue,
            retry_share=retry_share,
            strict=strict,
            max_retries_running=max_retries_running,
            concurrency=concurrency,
            unset=unset,
        ).wait()

    def workers(self) -> builtins.list[WorkerInfo]:
        """Every registered worker, oldest first."""
        return inspect.workers(self._store).wait()

    def stats(self) -> Stats:
        """The numbers over all queues."""
        return inspect.stats(self._store).wait()

    def schedules(self, *, limit: int = 50, cursor: str | None = None) -> Page[Schedule]:
        """A page of schedules by name; its `next_cursor` asks for the page after it."""
        return schedules.schedules(self._store, limit=limit, cursor=cursor).wait()

    def schedule(self, name: str) -> Schedule:
        """The schedule of that name; raises ScheduleNotFound."""
        return schedules.schedule(self._store, name).wait()

    def add_schedule(
        self,
        name: str,
        task: str,
        *args: Any,
        cron: str,
        kwargs: Mapping[str, Any] | None = None,
        replace: bool = False,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Have jobs of a task made at each tick of a rule; the same schedule again changes nothing.

        Options: `tz`, `queue`, `priority`, `max_attempts`, `max_retries`, `retry`, `delivery`, `timeout`, `overlap`,
        `missed`, `recurring`. Raises BadCron, BadOption, and Refused when another has the name, unless `replace`.
        """
        definition = schedules.define(name, task, args, kwargs or {}, cron, options)
        return schedules.add_schedule(self._store, definition, replace=replace).wait()

    def pause_schedule(self, name: str) -> bool:
        """Stop firing a schedule; whether that changed anything."""
        return schedules.pause_schedule(self._store, name).wait()

    def resume_schedule(self, name: str) -> bool:
        """Fire a paused schedule again, from its next tick on; whether that changed anything."""
        return schedules.resume_schedule(self._store, name).wait()

    def run_schedule_now(self, name: str) -> JobId:
        """Make a job of a schedule at once; raises Refused while one is unfinished, unless they may overlap."""
        return schedules.run_schedule_now(self._store, name, self._observer).wait()

    def next_ticks(self, name: str, n: int = 5) -> builtins.list[datetime]:
        """The next ticks of a schedule, whether it is paused or not."""
        return schedules.next_ticks(self._store, name, n).wait()

    def remove_schedule(self, name: str) -> None:
        """Forget a schedule; the jobs that it made stay."""
        schedules.remove_schedule(self._store, name).wait()
