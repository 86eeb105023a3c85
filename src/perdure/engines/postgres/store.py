"""The open PostgreSQL store: every verb of the seam, played in the calling thread or on the running event loop."""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from perdure.engines.group import Groups
from perdure.engines.open_guard import OpenGuard
from perdure.engines.postgres import (
    caller,
    commit,
    enqueue,
    fetch,
    forwards,
    jobs,
    queues,
    reads,
    replay,
    schedules,
    unpark,
    workers,
)
from perdure.engines.postgres.address import Address, read_address
from perdure.engines.postgres.audit import AuditVerbs
from perdure.engines.postgres.capability import look
from perdure.engines.postgres.change import change as change_jobs
from perdure.engines.postgres.connection import connect, shut
from perdure.engines.postgres.enqueue import Hint
from perdure.engines.postgres.fault import to_perdure_error
from perdure.engines.postgres.notes import NoteVerbs
from perdure.engines.postgres.runner import Runner
from perdure.engines.postgres.schema import migrate, schema_status
from perdure.engines.postgres.slow_claims import SlowClaims
from perdure.engines.postgres.standby import PostgresStandby
from perdure.engines.postgres.verb import Script, Verb
from perdure.engines.postgres.wakeup import PostgresWakeups
from perdure.engines.reply import Asked, Grouped
from perdure.model.change import Change
from perdure.model.forward import Forward, ForwardState, Tried
from perdure.model.job import Attempt, Job, JobId, NewJob, WorkerId
from perdure.model.queue.settings import FIELDS, QueueSettings
from perdure.model.schedule.definition import Schedule
from perdure.model.state import ENQUEUED
from perdure.store.capability import Capabilities
from perdure.store.forwards import DueForwards
from perdure.store.jobs import CancelAnswer, ChangeAnswer, Ended, Fetched, Promoted, Reaped, ReplayAnswer, Want
from perdure.store.reads import ErrorGroup, JobFilter, QueueInfo, Recent, RecentState, SchemaStatus
from perdure.store.reply import Reply
from perdure.store.schedules import Due, Firing
from perdure.store.wakeup import Wakeups
from perdure.store.workers import Beat, Renewal, WorkerInfo
from perdure.system.clock import Clock, SystemClock

T = TypeVar("T")


def open_postgres(rest: str, clock: Clock, *, auto_migrate: bool, is_inline: bool) -> PostgresStore:
    """Open the database of what follows `postgresql://`, and see to its schema."""
    address = read_address(rest)
    store = PostgresStore(address, clock, is_inline=is_inline)
    try:
        store.begin(auto_migrate=auto_migrate)
    except BaseException as error:
        store.close()
        seen = to_perdure_error(error, address.name)
        raise seen from (None if seen is error else error.__cause__ or error)
    return store


class PostgresStore(AuditVerbs, NoteVerbs):
    """An open PostgreSQL store; see perdure.store.Store for what each verb promises."""

    def __init__(self, address: Address, clock: Clock, *, is_inline: bool) -> None:
        self._address = address
        self._open_guard = OpenGuard()
        self._runner = Runner(address, clock, self._check_open)
        self._wakeups = PostgresWakeups(address, secrets.token_hex(8), has_thread=not is_inline)
        self._doubts = commit.Doubts()
        # What was passed is told by real time.
        self._slow = SlowClaims(is_enabled=isinstance(clock, SystemClock))
        self._groups = Groups(self._enqueue_on_loop, self._commit_on_loop)

    def begin(self, *, auto_migrate: bool) -> None:
        """Make the first connection: look at the server, and at the schema."""
        connection = connect(self._address)
        try:
            migrate(connection, self._address.schema, self._runner.now(), auto_migrate=auto_migrate)
        finally:
            shut(connection)
        self._capabilities = self._runner.run_verb(look(self._address))

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
        return self._within(connection, enqueue.enqueue_within(jobs, self._wakeups.always()))

    async def enqueue_within_async(self, connection: object, jobs: Sequence[NewJob]) -> list[JobId]:
        return await self._within_async(connection, enqueue.enqueue_within(jobs, self._wakeups.always()))

    def complete_within(self, connection: object, ended: Ended) -> bool:
        (accepted,) = self._within(connection, commit.script([ended], set()))
        self._doubts.add([ended])
        return accepted

    async def complete_within_async(self, connection: object, ended: Ended) -> bool:
        (accepted,) = await self._within_async(connection, commit.script([ended], set()))
        self._doubts.add([ended])
        return accepted

    def fetch(self, worker: WorkerId, wants: Sequence[Want], limit: int) -> Reply[Fetched]:
        return self._ask(fetch.fetch(worker, wants, limit, self._address.schema, self._slow))

    @property
    def can_stand_by(self) -> bool:
        listener = self._wakeups.listener()
        return listener is not None and listener.can_lend and self._runner.now() is None

    def stand_by(self, worker: WorkerId, wants: Sequence[Want], limit: int, patience: timedelta) -> PostgresStandby:
        listener = self._wakeups.listener()
        assert listener is not None, "only a worker that listens stands by"
        verb = fetch.fetch(worker, wants, limit, self._address.schema, self._slow)
        return PostgresStandby(verb, self._runner, listener, patience)

    def unpark(
        self, worker: WorkerId, wants: Sequence[Want], tasks: Sequence[str], limit: int
    ) -> Reply[builtins.list[Job]]:
        return self._ask(unpark.unpark(worker, wants, tasks, limit, self._address.schema))

    def start(self, worker: WorkerId, attempts: Sequence[tuple[JobId, int]]) -> Reply[list[bool]]:
        return self._ask(fetch.start(worker, attempts))

    def commit(self, ended: Sequence[Ended]) -> Reply[list[bool]]:
        return Grouped(ended, self._commit, self._groups.commits)

    def promote(self, limit: int) -> Reply[Promoted]:
        return self._ask(jobs.promote(limit, self._slow), wakes=lambda promoted: promoted.count > 0)

    def reap(self, limit: int, silent: Sequence[Renewal] | None = None) -> Reply[Reaped]:
        return self._ask(jobs.reap(limit, silent))

    def prune(self, older_than: timedelta, limit: int) -> Reply[int]:
        return self._ask(jobs.prune(older_than, limit, self._slow.ended))

    def cancel(self, ids: Sequence[JobId], reason: str) -> Reply[list[CancelAnswer]]:
        return self._ask(jobs.cancel(ids, reason), wakes=lambda answers: "asked" in answers)

    def change(self, ids: Sequence[JobId], change: Change) -> Reply[list[ChangeAnswer]]:
        return self._ask(change_jobs(ids, change, self._slow), wakes=lambda answers: "changed" in answers)

    def retry(self, ids: Sequence[JobId]) -> Reply[list[ReplayAnswer]]:
        return self._ask(replay.retry(ids), wakes=lambda answers: "replayed" in answers)

    def replay(self, where: JobFilter, limit: int, every: timedelta) -> Reply[int]:
        return self._ask(replay.replay(where, limit, every), wakes=bool)

    def discard(self, where: JobFilter, limit: int) -> Reply[int]:
        return self._ask(replay.discard(where, limit))

    def forward(self, queues: Sequence[str], limit: int, lease: timedelta) -> Reply[DueForwards]:
        return self._ask(forwards.forward(queues, limit, lease))

    def forwarded(self, tried: Sequence[Tried]) -> Reply[list[bool]]:
        return self._ask(forwards.forwarded(tried))

    def forward_now(self, where: JobFilter) -> Reply[int]:
        return self._ask(forwards.forward_now(where), wakes=bool)

    def forwards(self, ids: Sequence[JobId]) -> Reply[dict[JobId, Forward]]:
        return self._ask(forwards.forwards(ids))

    def forward_counts(self) -> Reply[dict[ForwardState, int]]:
        return self._ask(forwards.forward_counts())

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
        return self._ask(workers.register(worker, host, pid, queues, concurrency, version, lease))

    def beat(self, worker: WorkerId, lease: timedelta) -> Reply[Beat]:
        return self._ask(workers.beat(worker, lease, self._slow.listings), is_beat=True)

    def cancelling(self, worker: WorkerId) -> Reply[tuple[JobId, ...]]:
        return self._ask(workers.cancelling(worker))

    def deregister(self, worker: WorkerId) -> Reply[None]:
        return self._ask(workers.deregister(worker))

    def get(self, ids: Sequence[JobId]) -> Reply[list[Job | None]]:
        return self._ask(reads.get(ids))

    def history(self, job_id: JobId, limit: int) -> Reply[list[Attempt]]:
        return self._ask(reads.history(job_id, limit))

    def list(self, where: JobFilter, *, limit: int, after: JobId | None = None) -> Reply[builtins.list[Job]]:
        return self._ask(reads.list_jobs(where, limit, after))

    def count(self, where: JobFilter) -> Reply[int]:
        return self._ask(reads.count(where))

    def queues(self) -> Reply[builtins.list[QueueInfo]]:
        return self._ask(queues.queues())

    def groups(self, where: JobFilter, limit: int) -> Reply[builtins.list[ErrorGroup]]:
        return self._ask(reads.groups(where, limit))

    def recent(self, state: RecentState, limit: int) -> Reply[builtins.list[Recent]]:
        return self._ask(reads.recent(state, limit))

    def workers(self) -> Reply[builtins.list[WorkerInfo]]:
        return self._ask(reads.workers())

    def schema(self) -> Reply[SchemaStatus]:
        return self._ask(schema_status())

    def now(self) -> Reply[datetime]:
        return self._ask(reads.store_now())

    def pause(self, queue: str, reason: str | None, until: datetime | None = None) -> Reply[bool]:
        return self._ask(queues.pause(queue, reason, until))

    def resume(self, queue: str) -> Reply[bool]:
        return self._ask(queues.resume(queue), wakes=_always)

    def configure(self, queue: str, settings: QueueSettings, only: Sequence[str] = FIELDS) -> Reply[QueueSettings]:
        return self._ask(queues.configure(queue, settings, only), wakes=_always)

    def settings(self) -> Reply[dict[str, QueueSettings]]:
        return self._ask(queues.settings())

    def put_schedule(self, schedule: Schedule, replaces: str | None) -> Reply[bool]:
        return self._ask(schedules.put_schedule(schedule, replaces), wakes=bool)

    def get_schedules(self, names: Sequence[str]) -> Reply[builtins.list[Schedule | None]]:
        return self._ask(schedules.get_schedules(names))

    def schedules(
        self, *, limit: int, after: str | None = None, is_descending: bool = False
    ) -> Reply[builtins.list[Schedule]]:
        return self._ask(schedules.schedules(limit, after, is_descending))

    def remove_schedule(self, name: str) -> Reply[bool]:
        return self._ask(schedules.remove_schedule(name))

    def name_schedules(self, names: Sequence[str]) -> Reply[None]:
        return self._ask(schedules.name_schedules(names))

    def due(self, limit: int) -> Reply[Due]:
        return self._ask(schedules.due(limit))

    def fire(self, firings: Sequence[Firing]) -> Reply[builtins.list[bool]]:
        return self._ask(schedules.fire(firings), wakes=any)

    def _ask(self, verb: Verb[T], *, wakes: Callable[[T], bool] | None = None, is_beat: bool = False) -> Reply[T]:
        def answered(answer: T) -> None:
            if wakes is not None and wakes(answer):
                self._wakeups.hint()

        runner = self._runner
        return Asked(lambda: runner.run_verb(verb, is_beat=is_beat), lambda: runner.run_verb_on_loop(verb), answered)

    def _enqueue(self, jobs: Sequence[NewJob]) -> builtins.list[JobId]:
        hint = self._wakeups.turn()
        try:
            ids = self._runner.run_verb(enqueue.enqueue(jobs, hint))
        except BaseException:
            self._wakeups.failed(hint)
            raise
        self._announced(hint, jobs)
        return ids

    async def _enqueue_on_loop(self, jobs: Sequence[NewJob]) -> builtins.list[JobId]:
        hint = self._wakeups.turn()
        try:
            ids = await self._runner.run_verb_on_loop(enqueue.enqueue(jobs, hint))
        except BaseException:
            self._wakeups.failed(hint)
            raise
        self._announced(hint, jobs)
        return ids

    def _announced(self, hint: Hint, jobs: Sequence[NewJob]) -> None:
        self._slow.enqueued(jobs)
        if hint.channel is not None:
            self._wakeups.sent()
        self._wakeups.hint(is_sent=hint.channel is not None)

    def _commit(self, ended: Sequence[Ended]) -> builtins.list[bool]:
        answers = self._runner.run_verb(commit.commit(ended, self._doubts))
        self._hint_after(ended)
        return answers

    async def _commit_on_loop(self, ended: Sequence[Ended]) -> builtins.list[bool]:
        answers = await self._runner.run_verb_on_loop(commit.commit(ended, self._doubts))
        self._hint_after(ended)
        return answers

    def _hint_after(self, ended: Sequence[Ended]) -> None:
        states = {one.outcome.state for one in ended}
        if states & ENQUEUED:
            # What waits is promoted by this worker when it is due; what is ready others could take, or have to.
            self._wakeups.hint(is_sent="ready" not in states)

    def _within(self, connection: object, script: Script[T]) -> T:
        self._check_open()
        try:
            return caller.play_within(connection, script, self._runner.prepared)
        except Exception as error:
            raise to_perdure_error(error, self._address.name) from error

    async def _within_async(self, connection: object, script: Script[T]) -> T:
        self._check_open()
        try:
            return await caller.play_within_async(connection, script, self._runner.prepared)
        except Exception as error:
            raise to_perdure_error(error, self._address.name) from error

    def _check_open(self) -> None:
        with self._open_guard.lock:
            self._open_guard.check()


def _always(answer: object) -> bool:
    return True
