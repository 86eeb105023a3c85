"""The open Redis store: every verb of the seam, played in the calling thread or on the running event loop."""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from perdure.engines.group import Groups
from perdure.engines.open_guard import OpenGuard
from perdure.engines.redis import (
    commit,
    enqueue,
    enqueue_one,
    fetch,
    forwards,
    jobs,
    notes,
    queues,
    reads,
    replay,
    schedules,
    schema,
    unpark,
    workers,
)
from perdure.engines.redis.address import Address, read_address
from perdure.engines.redis.audit import AuditVerbs
from perdure.engines.redis.capability import capabilities, check, look
from perdure.engines.redis.change import change as change_jobs
from perdure.engines.redis.fault import to_perdure_error
from perdure.engines.redis.runner import Runner
from perdure.engines.redis.standby import RedisStandby, Standbys
from perdure.engines.redis.verb import Verb
from perdure.engines.redis.wakeup import RedisWakeups
from perdure.engines.reply import Asked, Grouped
from perdure.errors import Unsupported
from perdure.model.change import Change
from perdure.model.forward import Forward, ForwardState, Tried
from perdure.model.job import Attempt, Job, JobId, NewJob, WorkerId
from perdure.model.queue.settings import FIELDS, QueueSettings
from perdure.model.schedule.definition import Schedule
from perdure.model.state import ENQUEUED
from perdure.store.capability import Capabilities
from perdure.store.forwards import DueForwards
from perdure.store.jobs import CancelAnswer, ChangeAnswer, Ended, Fetched, Promoted, Reaped, ReplayAnswer, Want
from perdure.store.notes import Note
from perdure.store.reads import ErrorGroup, JobFilter, QueueInfo, Recent, RecentState, SchemaStatus
from perdure.store.reply import Reply
from perdure.store.schedules import Due, Firing
from perdure.store.wakeup import Wakeups
from perdure.store.workers import Beat, Renewal, WorkerInfo
from perdure.system.clock import Clock

T = TypeVar("T")


def open_redis(rest: str, clock: Clock, *, is_tls: bool, is_inline: bool) -> RedisStore:
    """Open the store of what follows the URL's scheme, and look at the server it is on."""
    address = read_address(rest, is_tls=is_tls)
    try:
        store = RedisStore(address, clock, is_inline=is_inline)
        try:
            store.begin()
        except BaseException:
            store.close()
            raise
    except Exception as error:
        seen = to_perdure_error(error, address.name)
        raise seen from (error.__cause__ if seen is error else error)
    return store


class RedisStore(AuditVerbs):
    """An open Redis store; see perdure.store.Store for what each verb promises."""

    def __init__(self, address: Address, clock: Clock, *, is_inline: bool) -> None:
        self._address = address
        self._open_guard = OpenGuard()
        sender = secrets.token_hex(8)
        self._runner = Runner(address, clock, sender, self._check_open)
        self._wakeups = RedisWakeups(address, sender, self._runner.client, has_thread=not is_inline)
        self._doubts = commit.Doubts()
        self._plain = enqueue_one.PlainJobs(self._runner)
        self._groups = Groups(self._enqueue_on_loop, self._commit_on_loop)
        self._standbys = Standbys(address, self._runner.run_verb_on_loop)

    def begin(self) -> None:
        """Look at the server, and at the version of the store."""
        server = look(self._runner.client.ask)
        check(server, self._address)
        self._capabilities = capabilities(server, self._address)
        self._runner.run_verb(schema.begin())

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def wakeups(self) -> Wakeups:
        return self._wakeups

    def close(self) -> None:
        if self._open_guard.shut():
            self._wakeups.close()
            self._runner.close()

    def enqueue(self, jobs: Sequence[NewJob]) -> Reply[list[JobId]]:
        return Grouped(jobs, self._enqueue, self._groups.enqueues)

    def enqueue_within(self, connection: object, jobs: Sequence[NewJob]) -> list[JobId]:
        raise _no_shared_transaction("enqueue")

    async def enqueue_within_async(self, connection: object, jobs: Sequence[NewJob]) -> list[JobId]:
        raise _no_shared_transaction("enqueue")

    def complete_within(self, connection: object, ended: Ended) -> bool:
        raise _no_shared_transaction("complete a job")

    async def complete_within_async(self, connection: object, ended: Ended) -> bool:
        raise _no_shared_transaction("complete a job")

    def fetch(self, worker: WorkerId, wants: Sequence[Want], limit: int) -> Reply[Fetched]:
        return self._ask(lambda: fetch.fetch(worker, wants, limit))

    @property
    def can_stand_by(self) -> bool:
        return self._standbys.are_possible

    def stand_by(self, worker: WorkerId, wants: Sequence[Want], limit: int, patience: timedelta) -> RedisStandby:
        return self._standbys.make(worker, wants, limit, patience)

    def unpark(
        self, worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int
    ) -> Reply[builtins.list[Job]]:
        return self._ask(lambda: unpark.unpark(worker, wants, tasks, limit))

    def start(self, worker: WorkerId, attempts: Sequence[tuple[JobId, int]]) -> Reply[list[bool]]:
        return self._ask(lambda: fetch.start(worker, attempts))

    def commit(self, ended: Sequence[Ended]) -> Reply[list[bool]]:
        return Grouped(ended, self._commit, self._groups.commits)

    def promote(self, limit: int) -> Reply[Promoted]:
        return self._ask(lambda: jobs.promote(limit), wakes=lambda promoted: promoted.count > 0)

    def reap(self, limit: int, silent: Sequence[Renewal] | None = None) -> Reply[Reaped]:
        return self._ask(lambda: jobs.reap(limit, silent))

    def prune(self, older_than: timedelta, limit: int) -> Reply[int]:
        return self._ask(lambda: jobs.prune(older_than, limit))

    def cancel(self, ids: Sequence[JobId], reason: str) -> Reply[list[CancelAnswer]]:
        return self._ask(lambda: jobs.cancel(ids, reason), wakes=lambda answers: "asked" in answers)

    def change(self, ids: Sequence[JobId], change: Change) -> Reply[list[ChangeAnswer]]:
        return self._ask(lambda: change_jobs(ids, change), wakes=lambda answers: "changed" in answers)

    def retry(self, ids: Sequence[JobId]) -> Reply[list[ReplayAnswer]]:
        return self._ask(lambda: replay.retry(ids), wakes=lambda answers: "replayed" in answers)

    def replay(self, where: JobFilter, limit: int, every: timedelta) -> Reply[int]:
        return self._ask(lambda: replay.replay(where, limit, every), wakes=bool)

    def discard(self, where: JobFilter, limit: int) -> Reply[int]:
        return self._ask(lambda: replay.discard(where, limit))

    def forward(self, queues: Sequence[str], limit: int, lease: timedelta) -> Reply[DueForwards]:
        return self._ask(lambda: forwards.forward(queues, limit, lease))

    def forwarded(self, tried: Sequence[Tried]) -> Reply[list[bool]]:
        return self._ask(lambda: forwards.forwarded(tried))

    def forward_now(self, where: JobFilter) -> Reply[int]:
        return self._ask(lambda: forwards.forward_now(where), wakes=bool)

    def forwards(self, ids: Sequence[JobId]) -> Reply[dict[JobId, Forward]]:
        return self._ask(lambda: forwards.forwards(ids))

    def forward_counts(self) -> Reply[dict[ForwardState, int]]:
        return self._ask(forwards.forward_counts)

    def register(
        self,
        worker: WorkerId,
        *,
        host: str,
        pid: int,
        queues: tuple[str, ...],
        concurrency: int,
        version: str,
        lease: timedelta,
    ) -> Reply[None]:
        return self._ask(lambda: workers.register(worker, host, pid, queues, concurrency, version, lease))

    def beat(self, worker: WorkerId, lease: timedelta) -> Reply[Beat]:
        return self._ask(lambda: workers.beat(worker, lease))

    def cancelling(self, worker: WorkerId) -> Reply[tuple[JobId, ...]]:
        return self._ask(lambda: workers.cancelling(worker))

    def deregister(self, worker: WorkerId) -> Reply[None]:
        return self._ask(lambda: workers.deregister(worker))

    def get(self, ids: Sequence[JobId]) -> Reply[list[Job | None]]:
        return self._ask(lambda: reads.get(ids))

    def history(self, job_id: JobId, limit: int) -> Reply[list[Attempt]]:
        return self._ask(lambda: reads.history(job_id, limit))

    def list(self, where: JobFilter, *, limit: int, after: JobId | None = None) -> Reply[builtins.list[Job]]:
        return self._ask(lambda: reads.list_jobs(where, limit, after))

    def count(self, where: JobFilter) -> Reply[int]:
        return self._ask(lambda: reads.count(where))

    def queues(self) -> Reply[builtins.list[QueueInfo]]:
        return self._ask(queues.queues)

    def groups(self, where: JobFilter, limit: int) -> Reply[builtins.list[ErrorGroup]]:
        return self._ask(lambda: reads.groups(where, limit))

    def recent(self, state: RecentState, limit: int) -> Reply[builtins.list[Recent]]:
        return self._ask(lambda: reads.recent(state, limit))

    def workers(self) -> Reply[builtins.list[WorkerInfo]]:
        return self._ask(workers.workers)

    def schema(self) -> Reply[SchemaStatus]:
        return self._ask(schema.schema_status)

    def now(self) -> Reply[datetime]:
        return self._ask(reads.store_now)

    def pause(self, queue: str, reason: str | None, until: datetime | None = None) -> Reply[bool]:
        return self._ask(lambda: queues.pause(queue, reason, until))

    def resume(self, queue: str) -> Reply[bool]:
        return self._ask(lambda: queues.resume(queue), wakes=_always)

    def configure(self, queue: str, settings: QueueSettings, only: Sequence[str] = FIELDS) -> Reply[QueueSettings]:
        return self._ask(lambda: queues.configure(queue, settings, only), wakes=_always)

    def settings(self) -> Reply[dict[str, QueueSettings]]:
        return self._ask(queues.settings)

    def note(self, kind: str, key: str, body: str, keep: timedelta, *, replaces: bool = False) -> Reply[Note]:
        return self._ask(lambda: notes.note(kind, key, body, keep, replaces))

    def notes(self, kind: str, limit: int) -> Reply[builtins.list[Note]]:
        return self._ask(lambda: notes.notes(kind, limit))

    def put_schedule(self, schedule: Schedule, replaces: str | None) -> Reply[bool]:
        return self._ask(lambda: schedules.put_schedule(schedule, replaces), wakes=bool)

    def get_schedules(self, names: Sequence[str]) -> Reply[builtins.list[Schedule | None]]:
        return self._ask(lambda: schedules.get_schedules(names))

    def schedules(
        self, *, limit: int, after: str | None = None, is_descending: bool = False
    ) -> Reply[builtins.list[Schedule]]:
        return self._ask(lambda: schedules.schedules(limit, after, is_descending))

    def remove_schedule(self, name: str) -> Reply[bool]:
        return self._ask(lambda: schedules.remove_schedule(name))

    def name_schedules(self, names: Sequence[str]) -> Reply[None]:
        return self._ask(lambda: schedules.name_schedules(names))

    def due(self, limit: int) -> Reply[Due]:
        return self._ask(lambda: schedules.due(limit))

    def fire(self, firings: Sequence[Firing]) -> Reply[builtins.list[bool]]:
        return self._ask(lambda: schedules.fire(firings), wakes=any)

    def _ask(self, make: Callable[[], Verb[T]], *, wakes: Callable[[T], bool] | None = None) -> Reply[T]:
        def answered(answer: T) -> None:
            if wakes is not None and wakes(answer):
                self._wakeups.hint()

        runner = self._runner
        return Asked(lambda: runner.run_verb(make()), lambda: runner.run_verb_on_loop(make()), answered)

    def _enqueue(self, jobs: Sequence[NewJob]) -> builtins.list[JobId]:
        packed = self._plain.pack(jobs[0]) if len(jobs) == 1 else None
        if packed is None:
            ids = self._runner.run_verb(enqueue.enqueue(jobs))
        else:
            self._runner.run_packed(packed, lambda: enqueue_one.enqueue_one(jobs[0]))
            ids = [jobs[0].id]
        self._wakeups.hint()
        return ids

    async def _enqueue_on_loop(self, jobs: Sequence[NewJob]) -> builtins.list[JobId]:
        ids = await self._runner.run_verb_on_loop(enqueue.enqueue(jobs))
        self._wakeups.hint()
        return ids

    def _commit(self, ended: Sequence[Ended]) -> builtins.list[bool]:
        answers = self._runner.run_verb(commit.commit(ended, self._doubts))
        self._hint_after(ended)
        return answers

    async def _commit_on_loop(self, ended: Sequence[Ended]) -> builtins.list[bool]:
        answers = await self._runner.run_verb_on_loop(commit.commit(ended, self._doubts))
        self._hint_after(ended)
        return answers

    def _hint_after(self, ended: Sequence[Ended]) -> None:
        if any(one.outcome.state in ENQUEUED for one in ended):
            self._wakeups.hint()

    def _check_open(self) -> None:
        with self._open_guard.lock:
            self._open_guard.check()


def _always(answer: object) -> bool:
    return True


def _no_shared_transaction(what: str) -> Unsupported:
    return Unsupported(
        f"Redis cannot {what} inside a caller's transaction: the caller's data are in another store, and no"
        " transaction spans both.",
        "Do it after your own commit, or keep the jobs beside your data, in PostgreSQL or SQLite.",
    )
