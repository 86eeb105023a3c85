"""The app: knows tasks, queues and settings, opens the store, and puts everything together. Only it knows engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from perdure.application.assembly import Surroundings, make_scheduler, make_worker, start_backoff
from perdure.application.http_task import HttpJobs
from perdure.application.identity import version
from perdure.application.registry import Registry
from perdure.application.sinks import Sinks, app_letter
from perdure.application.sources import Configuration
from perdure.client import AsyncClient
from perdure.client_sync import Client
from perdure.configuration.settings import Settings
from perdure.dead_letter import DeadLetter, DeadLetterLike
from perdure.engines.opener import open_store, schema_sql
from perdure.http.secrets import SecretsLike
from perdure.model.event import Observer
from perdure.model.job import Job, JobId, NewJob
from perdure.model.option import checked_timeout
from perdure.model.payload.codec import encode_args
from perdure.model.policy.explain import Explanation
from perdure.model.policy.limit import Limit, read_limit
from perdure.model.policy.resolve import AppPolicy, QueuePolicy, TaskPolicy
from perdure.model.policy.retry import Retry
from perdure.model.queue.settings import Cap, QueueSettings
from perdure.model.schedule.definition import Missed, Overlap
from perdure.model.state import Delivery
from perdure.observe.observing import Observing
from perdure.runtime.periodic.scheduler import LoneScheduler
from perdure.runtime.process import run_until_signalled
from perdure.runtime.worker import Worker
from perdure.store import Store
from perdure.system.fork import lock_of
from perdure.task import Bound, RetryLike, Task, bind_named, connection_of, make_options, schedule_of
from perdure.text.duration import Duration

if TYPE_CHECKING:
    from perdure.testing import Harness
    from perdure.web.app import ASGI

P = ParamSpec("P")
R = TypeVar("R")


class App:
    """Knows tasks, queues and settings; opens the store when it is first needed."""

    def __init__(
        self,
        url: str | None = None,
        *,
        settings: Settings | None = None,
        retry: RetryLike | None = None,
        auto_migrate: bool | None = None,
        max_attempts_cap: int | None = None,
        observer: Observer | None = None,
        tracing: bool | None = None,
        dead_letter: DeadLetterLike | None = None,
        secrets: SecretsLike | None = None,
    ) -> None:
        given = {"url": url, "auto_migrate": auto_migrate, "max_attempts_cap": max_attempts_cap, "otel": tracing}
        configuration = Configuration.read(os.environ, settings, retry=retry, secrets=secrets, **given)
        self.configuration = configuration
        self.settings = settings = configuration.settings
        self._observing = Observing(
            settings, observer, store=lambda: self.store, clock=lambda: self.surroundings.clock, version=version
        )
        self.observer: Observer = self._observing.observer
        letter = app_letter(configuration, dead_letter)
        policy = AppPolicy(
            sink=None if letter is None else letter.sink,
            retry=configuration.retry,
            retry_place=configuration.place_of("retry"),
            max_attempts_cap=settings.max_attempts_cap,
            max_retry_after=settings.max_retry_after,
            unknown_task_ttl=settings.unknown_task_ttl,
        )
        self.registry = Registry(policy, configuration)
        self._lock = lock_of(self)
        self._store: Store | None = None
        opened = partial(configuration.naming("url")(open_store), settings.url, auto_migrate=settings.auto_migrate)
        self.surroundings = Surroundings.real(lambda clock: opened(clock=clock))
        with configuration.naming("http_allow", "http_signing_secrets", "secrets"):
            self.http = HttpJobs(self, settings, clock=lambda: self.surroundings.clock, version=version)
        self.registry.add_builtin(self.http.task, self.http.release)
        with configuration.naming("dead_letter_retry"):
            self.sinks = Sinks(
                letter, self.registry, self.http, settings=settings, store=lambda: self.store, observing=self._observing
            )

    def __repr__(self) -> str:
        return f"<App, tasks: {len(self.tasks)}>"

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
        policy = QueuePolicy(retry=own, retry_queue=retry_queue, settings=settings, sink=sink)
        self.registry.describe_queue(name, policy)
        self.sinks.describe(name, letter)

    def schedule(
        self,
        name: str,
        job: Bound,
        *,
        cron: str,
        tz: str = "UTC",
        overlap: Overlap = "skip",
        missed: Missed = "latest",
        recurring: bool = True,
    ) -> None:
        """Have a job made at each tick of a rule: `app.schedule("nightly", render.bind("today"), cron="0 0 3 * * *")`.

        Workers register it when they start; until then nothing is stored.
        """
        rule = schedule_of(name, job, cron=cron, tz=tz, overlap=overlap, missed=missed, recurring=recurring)
        self.registry.add_schedule(rule)

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
        if (store := self._store) is None:
            with self._lock:
                store = self._store = self._store or self.surroundings.open_store()
        return store

    @property
    def opened(self) -> Store | None:
        """The store, if it is open already; never waits."""
        return self._store

    def close(self) -> None:
        """Close the store, if it is open; using the app again opens it again."""
        # Without the lock, which a thread may hold for as long as opening takes: the program may be ending.
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def client(self) -> Client:
        """The verbs for looking at jobs and acting on them, blocking."""
        return Client(self.store, self.observer)

    def client_async(self) -> AsyncClient:
        """The same verbs, awaited."""
        return AsyncClient(self.store, self.observer)

    def enqueue_many(self, jobs: Sequence[Bound]) -> list[JobId]:
        """Make many jobs durable in one batch, all or none; gives their ids in order."""
        if not jobs:
            return []
        connection = connection_of(jobs)
        began, new = self.surroundings.clock.now(), self.new_jobs(jobs)
        store = self.store
        ids = store.enqueue(new).wait() if connection is None else store.enqueue_within(connection, new)
        self._observing.enqueued(new, ids, began)
        return ids

    async def enqueue_many_async(self, jobs: Sequence[Bound]) -> list[JobId]:
        """The same, awaited."""
        if not jobs:
            return []
        connection = connection_of(jobs)
        began, new = self.surroundings.clock.now(), self.new_jobs(jobs)
        store = self.store
        ids = await (store.enqueue(new) if connection is None else store.enqueue_within_async(connection, new))
        self._observing.enqueued(new, ids, began)
        return ids

    def bind_named(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], **options: Any) -> Bound:
        """A task by name with arguments and options; the task may live in another program."""
        known = self.tasks.get(task)
        if known is not None:
            return known.options(**options).bind(*args, **kwargs)
        if task == self.http.task.name and not args:
            return self.http.call(kwargs, **options)
        encoded = encode_args(tuple(args), dict(kwargs), self.max_payload)
        return bind_named(task, encoded, make_options(**options))

    def enqueue_named(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], **options: Any) -> JobId:
        """Enqueue a task by name, as the command line does."""
        return self.enqueue_many([self.bind_named(task, args, kwargs, **options)])[0]

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
        metrics_port: int | None = None,
        wait: bool = True,
    ) -> None:
        """Work until SIGTERM or SIGINT, in the main thread; a second stops at once. `wait`: also for the engine."""
        try:
            run_until_signalled(
                lambda: self.make_worker(queues, concurrency, lease, grace),
                open_store=lambda: self.store,
                backoff=start_backoff("worker", self.surroundings, self.observer) if wait else None,
                serve=partial(self._observing.served, port=metrics_port),
            )
        finally:
            self._observing.close()
            self.close()

    def make_worker(
        self,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        concurrency: int | None = None,
        lease: timedelta | None = None,
        grace: timedelta | None = None,
    ) -> Worker:
        """A worker that is not running yet; call it on the event loop that will run it."""
        worker = make_worker(
            self.registry,
            self.settings,
            sinks=self.sinks,
            store=self.store,
            here=self.surroundings,
            observer=self.observer,
            queues=queues,
            concurrency=concurrency,
            lease=lease,
            grace=grace,
            tracing=self._observing.tracing,
        )
        return self._observing.watched(worker, [(task.queue, task.name) for task in self.tasks.values()])

    def make_scheduler(self) -> LoneScheduler:
        """What fires schedules, by itself and not running yet; workers have one of their own."""
        return make_scheduler(
            self.registry, self.settings, store=self.store, here=self.surroundings, observer=self.observer
        )

    def render_metrics(self) -> tuple[bytes, str]:
        """The metrics of this process and of the store, as Prometheus reads them, and their content type."""
        return self._observing.render()

    def schema_sql(self) -> str:
        """The statements that make the store's schema, for whoever does not let programs change tables."""
        return schema_sql(self.settings.url)

    def asgi(self, **options: Any) -> ASGI:
        """The REST API as an ASGI application, to serve or to mount; `perdure.web.app.create_app` says the options."""
        from perdure.web.app import create_app  # the web framework is loaded by those who use it

        return create_app(self, **options)

    def testing(self, *, seed: int = 0) -> Harness:
        """The app on an in-memory store and a clock under the test's control; a context manager."""
        from perdure.testing import Harness  # the harness needs the app, and only tests need it

        return Harness(self, seed=seed)

    def new_jobs(self, bounds: Sequence[Bound]) -> list[NewJob]:
        """The jobs that a store's `enqueue` takes, each with an id of its own."""
        return [bound.new_job(id) for bound, id in zip(bounds, self.surroundings.ids.jobs(len(bounds)), strict=True)]
