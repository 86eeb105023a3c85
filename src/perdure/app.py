"""The app: knows tasks, queues and settings, opens the store, and puts everything together. Only it knows engines."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from random import Random, SystemRandom
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import msgspec

from perdure.client import AsyncClient
from perdure.client_sync import Client
from perdure.clock import Clock, SystemClock
from perdure.duration import Duration
from perdure.engines.opener import open_store
from perdure.errors import BadOption, UnknownTask
from perdure.identity import Ids
from perdure.model.codec import encode_args
from perdure.model.event import Observer
from perdure.model.explain import Explanation, explain
from perdure.model.fairness import Fairness
from perdure.model.job import Job, JobId, NewJob
from perdure.model.limit import Limit, read_limit
from perdure.model.resolve import AppPolicy, Policy, QueuePolicy, TaskPolicy, resolve
from perdure.model.retry import Retry
from perdure.model.state import Delivery
from perdure.observe.log import LogObserver
from perdure.runtime.handler import Handler
from perdure.runtime.worker import Plan, Worker
from perdure.settings import Settings
from perdure.store import Store
from perdure.task import (
    Bound,
    RetryLike,
    Task,
    bind_named,
    checked_queue,
    checked_timeout,
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
        self._policy = AppPolicy(
            retry=Retry.coerce(retry),
            max_attempts_cap=settings.max_attempts_cap,
            max_retry_after=settings.max_retry_after,
            unknown_task_ttl=settings.unknown_task_ttl,
        )
        self._tasks: dict[str, Task[..., Any]] = {}
        self._handlers: dict[str, Handler] = {}
        self._queues: dict[str, QueuePolicy] = {}
        self._plain_queue = QueuePolicy()
        self._policies: dict[tuple[str, str], Policy] = {}
        self._lock = threading.Lock()
        self._store: Store | None = None
        clock = SystemClock()
        self.surroundings = Surroundings(
            clock=clock,
            random=Random(),
            ids=Ids(clock, SystemRandom()),
            open_store=lambda: open_store(settings.url, clock=clock, auto_migrate=settings.auto_migrate),
        )

    def __repr__(self) -> str:
        return f"<App with {len(self._tasks)} tasks>"

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
            self._register(task)
            return task

        return register if function is None else register(function)

    def queue(
        self,
        name: str,
        *,
        retry: RetryLike | None = None,
        retry_share: float = 0.2,
        strict: bool = False,
        retry_queue: str | None = None,
        max_retries_running: int | None = None,
    ) -> None:
        """Say how a queue treats its jobs; queues that nobody describes have the defaults."""
        fairness = Fairness(
            retry_share=retry_share,
            is_strict=strict,
            retry_queue=retry_queue,
            max_retries_running=max_retries_running,
        )
        policy = QueuePolicy(retry=None if retry is None else Retry.coerce(retry), fairness=fairness)
        self._queues[checked_queue(name)] = policy
        self._policies.clear()

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """Every registered task by name."""
        return MappingProxyType(self._tasks)

    def queue_names(self) -> tuple[str, ...]:
        """Every queue that the app's code names: those of its tasks, the described ones, and their retry queues."""
        names = {"default", *self._queues, *(task.queue for task in self._tasks.values())}
        names.update(policy.fairness.retry_queue for policy in self._queues.values() if policy.fairness.retry_queue)
        return tuple(sorted(names))

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
        connection = _connection_of(jobs)
        new = [self._new_job(bound) for bound in jobs]
        if connection is not None:
            return self.store.enqueue_within(connection, new)
        return self.store.enqueue(new).wait()

    async def enqueue_many_async(self, jobs: Sequence[Bound]) -> list[JobId]:
        """The same, awaited."""
        if not jobs:
            return []
        connection = _connection_of(jobs)
        new = [self._new_job(bound) for bound in jobs]
        if connection is not None:
            return self.store.enqueue_within(connection, new)
        return await self.store.enqueue(new)

    def enqueue_named(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], **options: Any) -> JobId:
        """Enqueue a task by name, as the command line does; the task may live in another program."""
        known = self._tasks.get(task)
        if known is not None:
            prepared = known.options(**options)
            return prepared.enqueue(*args, **kwargs)
        encoded = encode_args(tuple(args), dict(kwargs), self.max_payload)
        return self.enqueue_many([bind_named(task, encoded, make_options(**options))])[0]

    def explain(self, task: str) -> Explanation:
        """The policy that a plain job of this task gets, each value with its origin."""
        found = self._tasks.get(task)
        if found is None:
            known = ", ".join(sorted(self._tasks)) or "none"
            raise UnknownTask(f"No task is named {task!r}.", f"Registered tasks: {known}.")
        plain = self._plain_job(found)
        return explain(
            f"task {task}",
            self.policy(plain),
            queue=found.queue,
            delivery=found.delivery,
            delivery_origin="task",
        )

    def explain_job(self, job: Job) -> Explanation:
        """The policy that holds for this job, each value with its origin."""
        subject = f"job {job.id} ({job.task})"
        return explain(subject, self.policy(job), queue=job.queue, delivery=job.delivery, delivery_origin="job")

    def handler(self, task: str) -> Handler | None:
        """The handler of a task, for the runtime."""
        return self._handlers.get(task)

    def policy(self, job: Job) -> Policy:
        """The policy that holds for a job."""
        queue = job.origin or job.queue
        if job.retry is not None or job.max_attempts is not None or job.timeout is not None:
            return self._resolve(job, queue)
        key = (job.task, queue)
        found = self._policies.get(key)
        if found is None:
            found = self._policies[key] = self._resolve(job, queue)
        return found

    def fairness(self, queue: str) -> Fairness:
        """How a queue treats its lanes."""
        return self._queues.get(queue, self._plain_queue).fairness

    def run_worker(
        self,
        *,
        queues: Sequence[str] | None = None,
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
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        lease: timedelta | None = None,
        grace: timedelta | None = None,
    ) -> Worker:
        """A worker that is not running yet; call it on the event loop that will run it."""
        self._refuse_unreachable_functions()
        settings = self.settings
        plan = Plan(
            queues=tuple(checked_queue(queue) for queue in queues or settings.queues or self.queue_names()),
            concurrency=settings.concurrency if concurrency is None else concurrency,
            lease=settings.lease if lease is None else lease,
            grace=settings.grace if grace is None else grace,
            poll=settings.poll,
            prefetch=settings.prefetch,
            max_prefetch=settings.max_prefetch,
            retention=settings.retention,
            version=_version(),
        )
        here = self.surroundings
        return Worker(
            store=self.store,
            registry=self,
            plan=plan,
            clock=here.clock,
            random=here.random,
            observer=self.observer,
            new_id=here.ids.worker,
        )

    def testing(self, *, seed: int = 0) -> Harness:
        """The app on an in-memory store and a clock under the test's control; a context manager."""
        from perdure.testing import Harness  # the harness needs the app, and only tests need it

        return Harness(self, seed=seed)

    def _register(self, task: Task[..., Any]) -> None:
        if task.name in self._tasks:
            raise BadOption(
                f"A task named {task.name!r} is registered already.",
                'Give one of them another name: @app.task(name="...").',
            )
        self._tasks[task.name] = task
        self._policies.clear()
        self._handlers[task.name] = Handler.of(
            task.name,
            task.function,
            is_process=task.is_process,
            max_payload=self.settings.max_payload,
            max_result=self.settings.max_result,
        )

    def _resolve(self, job: Job, queue: str) -> Policy:
        task = self._tasks.get(job.task)
        return resolve(
            job, None if task is None else task.policy, self._queues.get(queue, self._plain_queue), self._policy
        )

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

    def _plain_job(self, task: Task[..., Any]) -> Job:
        now = self.surroundings.clock.now()
        return Job(
            id=JobId(""),
            task=task.name,
            queue=task.queue,
            state="ready",
            lane="fresh",
            args=b"{}",
            priority=task.priority,
            run_at=now,
            attempt=0,
            failures=0,
            recoveries=0,
            delivery=task.delivery,
            created_at=now,
        )

    def _refuse_unreachable_functions(self) -> None:
        for name, handler in self._handlers.items():
            if handler.kind == "process" and handler.reference is None:
                raise BadOption(
                    f"The task {name!r} has process=True, but a child process cannot find its function.",
                    "Define it at the top level of a module.",
                )


def _connection_of(jobs: Sequence[Bound]) -> object | None:
    """The caller's connection, if the jobs are to be enqueued in the caller's transaction; one for all."""
    connections: dict[int, object] = {id(bound.options.connection): bound.options.connection for bound in jobs}
    if len(connections) > 1:
        raise BadOption("These jobs name different connections.", "One batch is one transaction: use one connection.")
    return next(iter(connections.values()))


def _version() -> str:
    try:
        return version("perdure")
    except PackageNotFoundError:
        return "unknown"
