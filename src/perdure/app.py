"""The app: knows tasks, queues and settings, opens the store, and puts everything together. Only it knows engines."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import msgspec

from perdure.client import AsyncClient
from perdure.client_sync import Client
from perdure.clock import Clock, SystemClock
from perdure.dead_letter import DeadLetter, DeadLetterLike
from perdure.duration import Duration
from perdure.engines.opener import open_store, schema_sql
from perdure.http_task import HttpJobs
from perdure.identity import Ids, own_version
from perdure.model.codec import encode_args
from perdure.model.event import Observer
from perdure.model.explain import Explanation
from perdure.model.job import Job, JobId, NewJob
from perdure.model.limit import Limit, read_limit
from perdure.model.queue_settings import Cap, QueueSettings
from perdure.model.queue_text import read_queue_settings
from perdure.model.resolve import AppPolicy, QueuePolicy, TaskPolicy
from perdure.model.retry import Retry
from perdure.model.state import Delivery
from perdure.model.turns import read_weights
from perdure.observe.log import LogObserver
from perdure.registry import Registry
from perdure.runtime.worker import Plan, Worker
from perdure.settings import Settings
from perdure.sinks import Sinks
from perdure.store import Store
from perdure.task import (
    Bound,
    RetryLike,
    Task,
    bind_named,
    checked_timeout,
    connection_of,
    make_options,
)

if TYPE_CHECKING:
    from perdure.testing import Harness

P = ParamSpec("P")
R = TypeVar("R")


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What an app works in: real time and the configured store, or a test's."""

    clock: Clock
    random: Random
    ids: Ids
    open_store: Callable[[], Store]


class App:
    """Knows tasks, queues and settings; opens the store when it is first needed."""

    def __init__(
        self,
        url: str | None = None,
        *,
        settings: Settings | None = None,
        retry: RetryLike = "standard",
        auto_migrate: bool | None = None,
        max_attempts_cap: int | None = None,
        observer: Observer | None = None,
        dead_letter: DeadLetterLike | None = None,
    ) -> None:
        given = {"url": url, "auto_migrate": auto_migrate, "max_attempts_cap": max_attempts_cap}
        if settings is None:
            settings = Settings.from_environment(os.environ, **given)
        else:
            settings = msgspec.structs.replace(
                settings, **{name: value for name, value in given.items() if value is not None}
            )
        self.settings = settings
        self.observer: Observer = observer or LogObserver()
        said = settings.dead_letter if dead_letter is None else dead_letter
        letter = None if said is None else DeadLetter.coerce(said)
        policy = AppPolicy(
            sink=None if letter is None else letter.sink,
            retry=Retry.coerce(retry),
            max_attempts_cap=settings.max_attempts_cap,
            max_retry_after=settings.max_retry_after,
            unknown_task_ttl=settings.unknown_task_ttl,
        )
        self.registry = Registry(
            policy,
            max_payload=settings.max_payload,
            max_result=settings.max_result,
            configured=read_queue_settings(settings.queue_settings or ""),
        )
        self._lock = threading.Lock()
        self._store: Store | None = None
        clock = SystemClock()
        self.surroundings = Surroundings(
            clock=clock,
            random=Random(),
            ids=Ids(clock, SystemRandom()),
            open_store=lambda: open_store(settings.url, clock=clock, auto_migrate=settings.auto_migrate),
        )

        self.http = HttpJobs(self, settings, clock=lambda: self.surroundings.clock, version=own_version)
        self.registry.add_builtin(self.http.task, self.http.release)
        self.sinks = Sinks(letter, settings=settings, http=self.http, store=lambda: self.store, registry=self.registry)

    def __repr__(self) -> str:
        return f"<App with {len(self.tasks)} tasks>"

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        *,
        name: str | None = None,
        queue: str = "default",
        retry: RetryLike | None = None,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        timeout: Duration | None = None,
        priority: int = 0,
        delivery: Delivery = "at_least_once",
        process: bool = False,
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        queue: str = "default",
        retry: RetryLike | None = None,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        timeout: Duration | None = None,
        priority: int = 0,
        delivery: Delivery = "at_least_once",
        process: bool = False,
    ) -> Any:
        """Register a function as a task; the decorated name is the task, still callable as before."""
        policy = TaskPolicy(
            retry=None if retry is None else Retry.coerce(retry),
            max_attempts=read_limit(max_attempts, max_retries),
            timeout=checked_timeout(timeout),
        )

        def register(function: Callable[..., Any]) -> Task[..., Any]:
            task = Task(
                function,
                producer=self,
                name=name or function.__name__,
                queue=queue,
                priority=priority,
                delivery=delivery,
                is_process=process,
                policy=policy,
            )
            self.registry.add_task(task)
            return task

        return register if function is None else register(function)

    def queue(
        self,
        name: str,
        *,
        retry: RetryLike | None = None,
        retry_share: float | None = None,
        strict: bool | None = None,
        retry_queue: str | None = None,
        max_retries_running: Cap | None = None,
        concurrency: Cap | None = None,
        dead_letter: DeadLetterLike | None = None,
    ) -> None:
        """Say how a queue treats its jobs and how many run at once, over all workers; the rest has its defaults."""
        settings = QueueSettings(
            retry_share=retry_share, is_strict=strict, max_retries_running=max_retries_running, concurrency=concurrency
        )
        own = None if retry is None else Retry.coerce(retry)
        letter = None if dead_letter is None else DeadLetter.coerce(dead_letter)
        sink = None if letter is None else letter.sink
        self.registry.describe_queue(
            name, QueuePolicy(retry=own, retry_queue=retry_queue, settings=settings, sink=sink)
        )
        self.sinks.describe(name, letter)

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """Every registered task by name."""
        return self.registry.tasks

    @property
    def max_payload(self) -> int:
        return self.settings.max_payload

    @property
    def store(self) -> Store:
        """The open store; opened when first asked for."""
        with self._lock:
            if self._store is None:
                self._store = self.surroundings.open_store()
            return self._store

    def close(self) -> None:
        """Close the store, if it is open; using the app again opens it again."""
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def client(self) -> Client:
        """The verbs for looking at jobs and acting on them, blocking."""
        return Client(self.store)

    def client_async(self) -> AsyncClient:
        """The same verbs, awaited."""
        return AsyncClient(self.store)

    def enqueue_many(self, jobs: Sequence[Bound]) -> list[JobId]:
        """Make many jobs durable in one batch, all or none; gives their ids in order."""
        if not jobs:
            return []
        connection = connection_of(jobs)
        new = [self._new_job(bound) for bound in jobs]
        if connection is not None:
            return self.store.enqueue_within(connection, new)
        return self.store.enqueue(new).wait()

    async def enqueue_many_async(self, jobs: Sequence[Bound]) -> list[JobId]:
        """The same, awaited."""
        if not jobs:
            return []
        connection = connection_of(jobs)
        new = [self._new_job(bound) for bound in jobs]
        if connection is not None:
            return await self.store.enqueue_within_async(connection, new)
        return await self.store.enqueue(new)

    def enqueue_named(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], **options: Any) -> JobId:
        """Enqueue a task by name, as the command line does; the task may live in another program."""
        known = self.tasks.get(task)
        if known is not None:
            prepared = known.options(**options)
            return prepared.enqueue(*args, **kwargs)
        if task == self.http.task.name and not args:
            return self.http.call(kwargs, **options).enqueue()
        encoded = encode_args(tuple(args), dict(kwargs), self.max_payload)
        return self.enqueue_many([bind_named(task, encoded, make_options(**options))])[0]

    def explain(self, task: str, operator: Mapping[str, QueueSettings] | None = None) -> Explanation:
        """The policy that a plain job of this task gets, each value with its origin."""
        return self.registry.explain_task(task, self.surroundings.clock.now(), operator or {})

    def explain_job(self, job: Job, operator: Mapping[str, QueueSettings] | None = None) -> Explanation:
        """The policy that holds for this job, each value with its origin."""
        return self.registry.explain_job(job, operator or {})

    def run_worker(
        self,
        *,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        concurrency: int | None = None,
        lease: timedelta | None = None,
        grace: timedelta | None = None,
    ) -> None:
        """Work until SIGTERM or SIGINT; a second one stops at once. Blocks; must be called in the main thread."""
        from perdure.runtime.process import run_until_signalled  # signals and processes are a worker's business

        try:
            run_until_signalled(lambda: self.make_worker(queues, concurrency, lease, grace))
        finally:
            self.close()

    def make_worker(
        self,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        concurrency: int | None = None,
        lease: timedelta | None = None,
        grace: timedelta | None = None,
    ) -> Worker:
        """A worker that is not running yet; call it on the event loop that will run it."""
        self.registry.refuse_unreachable_functions()
        self.sinks.refuse_circles()
        settings = self.settings
        plan = Plan(
            queues=read_weights(queues or settings.queues or self.registry.queue_names()),
            concurrency=settings.concurrency if concurrency is None else concurrency,
            lease=settings.lease if lease is None else lease,
            grace=settings.grace if grace is None else grace,
            poll=settings.poll,
            prefetch=settings.prefetch,
            max_prefetch=settings.max_prefetch,
            retention=settings.retention,
            version=own_version(),
        )
        here = self.surroundings
        return Worker(
            store=self.store,
            registry=self.registry,
            sinks=self.sinks,
            plan=plan,
            clock=here.clock,
            random=here.random,
            observer=self.observer,
            new_id=here.ids.worker,
        )

    def schema_sql(self) -> str:
        """The statements that make the store's schema, for whoever does not let programs change tables."""
        return schema_sql(self.settings.url)

    def testing(self, *, seed: int = 0) -> Harness:
        """The app on an in-memory store and a clock under the test's control; a context manager."""
        from perdure.testing import Harness  # the harness needs the app, and only tests need it

        return Harness(self, seed=seed)

    def _new_job(self, bound: Bound) -> NewJob:
        options = bound.options
        return NewJob(
            id=self.surroundings.ids.job(),
            task=bound.task,
            queue=bound.queue,
            args=bound.args,
            delay=options.delay,
            run_at=options.run_at,
            priority=bound.priority,
            unique=options.unique,
            max_attempts=options.max_attempts,
            retry=None if options.retry is None else options.retry.text,
            delivery=bound.delivery,
            timeout=options.timeout,
        )
