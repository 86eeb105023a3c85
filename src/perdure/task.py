"""Tasks as a program sees them: call one and the function runs here; enqueue it and a worker runs it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from perdure.errors import BadArguments, BadOption
from perdure.model.job import JobId, NewJob
from perdure.model.option import (
    checked_delivery,
    checked_moment,
    checked_name,
    checked_priority,
    checked_queue,
    checked_timeout,
)
from perdure.model.payload.codec import encode_args
from perdure.model.policy.limit import Limit, read_limit
from perdure.model.policy.resolve import TaskPolicy
from perdure.model.policy.retry import Retry
from perdure.model.schedule.definition import Definition, Missed, Overlap
from perdure.model.schedule.option import make_definition
from perdure.model.state import DELIVERIES, Delivery
from perdure.text.duration import Duration, parse_duration

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

RetryLike = Retry | str

_LONGEST_KEY = 200


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How one job is to be enqueued; None where nothing was said."""

    queue: str | None = None
    delay: timedelta | None = None
    run_at: datetime | None = None
    priority: int | None = None
    unique: str | None = None
    max_attempts: int | None = None
    retry: Retry | None = None
    delivery: Delivery | None = None
    timeout: timedelta | None = None
    connection: Any = None


_PLAIN = Options()


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its arguments and options: all that a job needs but an id."""

    task: str
    args: bytes
    options: Options
    queue: str
    priority: int
    delivery: Delivery

    def new_job(self, job_id: JobId) -> NewJob:
        """The job with this id."""
        options = self.options
        return NewJob(
            id=job_id,
            task=self.task,
            queue=self.queue,
            args=self.args,
            delay=options.delay,
            run_at=options.run_at,
            priority=self.priority,
            unique=options.unique,
            max_attempts=options.max_attempts,
            retry=None if options.retry is None else options.retry.text,
            delivery=self.delivery,
            timeout=options.timeout,
        )


class Producer(Protocol):
    """What a task needs of its app."""

    def enqueue_many(self, jobs: Sequence[Bound]) -> list[JobId]: ...

    async def enqueue_many_async(self, jobs: Sequence[Bound]) -> list[JobId]: ...

    @property
    def max_payload(self) -> int: ...


class Task(Generic[P, R_co]):
    """A named, registered kind of work."""

    def __init__(
        self,
        function: Callable[P, R_co],
        *,
        producer: Producer,
        name: str,
        queue: str,
        priority: int,
        delivery: Delivery,
        is_process: bool,
        policy: TaskPolicy,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = checked_name(name)
        self.queue = checked_queue(queue)
        self.priority = checked_priority(priority)
        self.delivery = checked_delivery(delivery)
        self.is_process = is_process
        self.policy = policy
        self.signature = inspect.signature(function)
        self.producer = producer
        self._arity = _arity(self.signature)
        self._plain = bind_named(self, b"", _PLAIN)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Just call the function, here and now."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name} on {self.queue}>"

    @property
    def retry(self) -> Retry | None:
        """The task's own retry policy, if it has one."""
        return self.policy.retry

    @property
    def timeout(self) -> timedelta | None:
        """How long an attempt may run, if the task bounds it."""
        return self.policy.timeout

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound:
        """The task with these arguments, for `enqueue_many` and schedules."""
        return self._bound(self._plain, args, kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """Make a durable job of it; blocks until it is stored, gives its id."""
        return self.producer.enqueue_many([self._bound(self._plain, args, kwargs)])[0]

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """The same, awaited."""
        return (await self.producer.enqueue_many_async([self._bound(self._plain, args, kwargs)]))[0]

    def options(
        self,
        *,
        queue: str | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        priority: int | None = None,
        unique: str | None = None,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        retry: RetryLike | None = None,
        delivery: Delivery | None = None,
        timeout: Duration | None = None,
        connection: object = None,
    ) -> Prepared[P, R_co]:
        """The task with other options for the jobs that are enqueued through it."""
        options = make_options(
            queue=queue,
            delay=delay,
            run_at=run_at,
            priority=priority,
            unique=unique,
            max_attempts=max_attempts,
            max_retries=max_retries,
            retry=retry,
            delivery=delivery,
            timeout=timeout,
            connection=connection,
        )
        return Prepared(self, options)

    def _bound(self, plain: Bound, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """What is bound with no arguments yet, with these, if they fit."""
        if kwargs or len(args) not in self._arity:
            try:
                self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise BadArguments(
                    f"These arguments do not fit the task {self.name}{self.signature}: {str(error)[:200]}.",
                    "Enqueue with the arguments that the function takes.",
                ) from None
        return replace(plain, args=encode_args(args, kwargs, self.producer.max_payload))


class Prepared(Generic[P, R_co]):
    """A task with options, ready for arguments."""

    def __init__(self, task: Task[P, R_co], options: Options) -> None:
        self._task = task
        self._plain = bind_named(task, b"", options)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound:
        """The task with these arguments and options."""
        return self._task._bound(self._plain, args, kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """Make a durable job of it; blocks until it is stored, gives its id."""
        return self._task.producer.enqueue_many([self.bind(*args, **kwargs)])[0]

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """The same, awaited."""
        return (await self._task.producer.enqueue_many_async([self.bind(*args, **kwargs)]))[0]


def bind_named(task: Task[..., Any] | str, args: bytes, options: Options) -> Bound:
    """A task, or only the name of one that lives elsewhere, with encoded arguments."""
    if isinstance(task, str):
        name, queue, priority, delivery = checked_name(task), "default", 0, DELIVERIES[0]
    else:
        name, queue, priority, delivery = task.name, task.queue, task.priority, task.delivery
    return Bound(
        task=name,
        args=args,
        options=options,
        queue=options.queue if options.queue is not None else queue,
        priority=options.priority if options.priority is not None else priority,
        delivery=options.delivery if options.delivery is not None else delivery,
    )


def _arity(signature: inspect.Signature) -> range:
    """How many arguments by position, and none by name, surely fit."""
    parameters = signature.parameters.values()
    if any(one.kind is one.KEYWORD_ONLY and one.default is one.empty for one in parameters):
        return range(0)
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return range(sum(one.default is one.empty for one in positional), len(positional) + 1)


def connection_of(jobs: Sequence[Bound]) -> Any:
    """The caller's connection, if the jobs are to be enqueued in the caller's transaction; one for all."""
    if len(jobs) == 1:
        return jobs[0].options.connection
    connections: dict[int, object] = {id(bound.options.connection): bound.options.connection for bound in jobs}
    if len(connections) > 1:
        raise BadOption("These jobs name different connections.", "One batch is one transaction: use one connection.")
    return next(iter(connections.values()))


def schedule_of(
    name: str, job: Bound, *, cron: str, tz: str, overlap: Overlap, missed: Missed, recurring: bool
) -> Definition:
    """The schedule that makes such jobs."""
    if not isinstance(job, Bound):
        raise BadOption(
            f"The schedule {str(name)[:80]!r} was given a {type(job).__name__} as its job.",
            'Give a task with its arguments: app.schedule("nightly", render.bind("today"), cron="0 0 3 * * *").',
        )
    options = job.options
    for option in ("delay", "run_at", "unique", "connection"):
        if getattr(options, option) is not None:
            raise BadOption(f"The job of a schedule cannot have the option {option}.", "Leave it out.")
    return make_definition(
        name=name,
        task=job.task,
        args=job.args,
        cron=cron,
        tz=tz,
        queue=job.queue,
        priority=job.priority,
        max_attempts=options.max_attempts,
        retry=options.retry,
        delivery=job.delivery,
        timeout=options.timeout,
        is_recurring=recurring,
        overlap=overlap,
        missed=missed,
    )


def make_options(
    *,
    queue: str | None = None,
    delay: Duration | None = None,
    run_at: datetime | None = None,
    priority: int | None = None,
    unique: str | None = None,
    max_attempts: Limit | None = None,
    max_retries: Limit | None = None,
    retry: RetryLike | None = None,
    delivery: Delivery | None = None,
    timeout: Duration | None = None,
    connection: object = None,
) -> Options:
    """Check and unify the options of a job."""
    if delay is not None and run_at is not None:
        raise BadOption("delay and run_at are both given, and they say different things.", "Give one of them.")
    policy = None if retry is None else Retry.coerce(retry)
    if policy is not None:
        policy.text  # noqa: B018 - a policy that cannot be stored must be refused here, not in the worker
    return Options(
        queue=None if queue is None else checked_queue(queue),
        delay=None if delay is None else parse_duration(delay, what="delay"),
        run_at=None if run_at is None else checked_moment(run_at),
        priority=None if priority is None else checked_priority(priority),
        unique=None if unique is None else _checked_key(unique),
        max_attempts=read_limit(max_attempts, max_retries),
        retry=policy,
        delivery=None if delivery is None else checked_delivery(delivery),
        timeout=checked_timeout(timeout),
        connection=connection,
    )


def _checked_key(key: object) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY or not key.isprintable():
        raise BadOption(f"unique is {str(key)[:50]!r}; it must be a printable text of 1 to {_LONGEST_KEY} characters.")
    return key
