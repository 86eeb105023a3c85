"""What an app knows by name: tasks with their handlers, queues with their policies, and which policy a job gets."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from perdure.application.sources import Configuration
from perdure.errors import BadOption, UnknownTask
from perdure.model.job import Job, JobId
from perdure.model.option import checked_queue
from perdure.model.policy.explain import Explanation, explain
from perdure.model.policy.resolve import AppPolicy, Policy, QueuePolicy, resolve
from perdure.model.policy.retry import Retry
from perdure.model.queue.fairness import Fairness
from perdure.model.queue.settings import NOTHING_SAID, EffectiveQueue, QueueOrigin, QueueSettings, effective
from perdure.model.schedule.definition import Definition
from perdure.runtime.handler import Handler
from perdure.task import Task

_log = logging.getLogger("perdure")


class Registry:
    """Tasks and queues; answers the runtime's questions about them."""

    def __init__(self, policy: AppPolicy, configuration: Configuration) -> None:
        self._policy = policy
        self._configuration = configuration
        self._tasks: dict[str, Task[..., Any]] = {}
        self._builtins: dict[str, Task[..., Any]] = {}
        self._releases: list[Callable[[], Awaitable[None]]] = []
        self._handlers: dict[str, Handler] = {}
        self._queues: dict[str, QueuePolicy] = {}
        self._plain_queue = QueuePolicy()
        self._policies: dict[tuple[str, str], Policy] = {}
        self._schedules: dict[str, Definition] = {}
        self.entry_module: str | None = None
        """The module that the command line loaded the app from; child processes import it first."""

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """Every registered task by name."""
        return MappingProxyType(self._tasks)

    def add_task(self, task: Task[..., Any]) -> None:
        """Register a task; each name once."""
        if task.name in self._builtins:
            raise BadOption(
                f"The name {task.name!r} belongs to a task that every app has.",
                'Give yours another name: @app.task(name="...").',
            )
        if task.name in self._tasks:
            raise BadOption(
                f"A task named {task.name!r} is registered already.",
                'Give one of them another name: @app.task(name="...").',
            )
        self._tasks[task.name] = task
        self._add_handler(task)

    def add_builtin(self, task: Task[..., Any], release: Callable[[], Awaitable[None]]) -> None:
        """Know a task that every app has; `release` lets go of what its handler keeps open on an event loop."""
        self._builtins[task.name] = task
        self._releases.append(release)
        self._add_handler(task)

    async def release(self) -> None:
        """Let go of what handlers keep open on this event loop: the worker here has ended."""
        for release in self._releases:
            await release()

    def add_release(self, release: Callable[[], Awaitable[None]]) -> None:
        """Have something more let go when a worker here has ended."""
        self._releases.append(release)

    def _add_handler(self, task: Task[..., Any]) -> None:
        self._policies.clear()
        self._handlers[task.name] = Handler.of(
            task.name,
            task.function,
            is_process=task.is_process,
            max_payload=self._configuration.settings.max_payload,
            max_result=self._configuration.settings.max_result,
        )

    @property
    def schedules(self) -> Mapping[str, Definition]:
        """Every schedule of the code by name."""
        return MappingProxyType(self._schedules)

    def add_schedule(self, definition: Definition) -> None:
        """Register a schedule; each name once."""
        if definition.name in self._schedules:
            raise BadOption(f"A schedule named {definition.name!r} is registered already.", "Give one another name.")
        self._schedules[definition.name] = definition

    def describe_queue(self, name: str, policy: QueuePolicy) -> None:
        """Say how a queue treats its jobs."""
        self._queues[checked_queue(name)] = policy
        self._policies.clear()

    def queue_names(self) -> tuple[str, ...]:
        """Every queue that the code names: of tasks and schedules, the described ones, and their retry queues.

        But not those that dead jobs are copied to, unless a task lives there: the dead do not run again by themselves.
        """
        names = {"default", *self._queues, *(task.queue for task in self._tasks.values())}
        names.update(definition.queue for definition in self._schedules.values())
        names.update(policy.retry_queue for policy in self._queues.values() if policy.retry_queue)
        return tuple(sorted(names - self.graveyards()))

    def graveyards(self) -> frozenset[str]:
        """The queues that dead jobs are copied to and no task lives in."""
        homes = {"default", *(task.queue for task in self._tasks.values())}
        sinks = [self._policy.sink, *(policy.sink for policy in self._queues.values())]
        return frozenset({sink.queue for sink in sinks if sink is not None and sink.queue is not None} - homes)

    def homes(self, queues: Iterable[str]) -> tuple[str, ...]:
        """These queues, and those whose retries they take: where the jobs that end in them were enqueued to."""
        served = set(queues)
        return tuple(sorted(served | {name for name, policy in self._queues.items() if policy.retry_queue in served}))

    def handler(self, task: str) -> Handler | None:
        """The handler of a task, if it is known here."""
        return self._handlers.get(task)

    def task_names(self) -> tuple[str, ...]:
        """The names of all tasks that are known here, those of every app included."""
        return tuple(self._handlers)

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

    def fairness(self, queue: str, operator: QueueSettings = NOTHING_SAID) -> Fairness:
        """How a queue treats its lanes and what it lets run at once."""
        return self.effective_queue(queue, operator).fairness

    def effective_queue(self, queue: str, operator: QueueSettings = NOTHING_SAID) -> EffectiveQueue:
        """What holds for a queue, each value with its origin: the operator over configuration over code."""
        policy = self._queues.get(queue, self._plain_queue)
        said: list[tuple[QueueOrigin, QueueSettings]] = [
            ("operator", operator),
            *((origin, queues.get(queue, NOTHING_SAID)) for origin, queues in self._configuration.queues),
            ("code", policy.settings),
        ]
        return effective(said, policy.retry_queue)

    def queue_retry(self, queue: str) -> tuple[Retry | None, QueueOrigin]:
        """The queue's own retry policy, and which place sets it; None where the app's holds."""
        policy = self._queue_policy(queue)
        if policy.retry is None:
            return None, "default"
        return policy.retry, "code" if policy.retry_place is None else "file"

    def explain_task(self, name: str, now: datetime, operator: Mapping[str, QueueSettings]) -> Explanation:
        """The policy that a plain job of this task gets, each value with its origin."""
        task = self._known(name)
        return explain(
            f"task {name}",
            self.task_policy(name, now),
            queue=task.queue,
            treated=self.effective_queue(task.queue, operator.get(task.queue, NOTHING_SAID)),
            delivery=task.delivery,
            delivery_origin="task",
        )

    def task_policy(self, name: str, now: datetime) -> Policy:
        """The policy that a plain job of this task gets."""
        return self.policy(_plain_job(self._known(name), now))

    def explain_job(self, job: Job, operator: Mapping[str, QueueSettings]) -> Explanation:
        """The policy that holds for this job, each value with its origin."""
        return explain(
            f"job {job.id} ({job.task})",
            self.policy(job),
            queue=job.queue,
            treated=self.effective_queue(job.queue, operator.get(job.queue, NOTHING_SAID)),
            delivery=job.delivery,
            delivery_origin="job",
        )

    def refuse_unreachable_functions(self) -> None:
        """Every function that is to run in a child process must be one that a child can find."""
        for name, handler in self._handlers.items():
            if handler.kind == "process" and handler.reference is None:
                raise BadOption(
                    f"The task {name!r} has process=True, but a child process cannot find its function.",
                    "Define it at the top level of a module.",
                )

    def _resolve(self, job: Job, queue: str) -> Policy:
        task = self._find(job.task)
        own = None if task is None else task.policy
        found = resolve(job, own, self._queue_policy(queue), self._policy)
        if job.retry is not None and found.retry_origin != "job":
            _name_unreadable(job.retry, job.id)
        return found

    def _queue_policy(self, name: str) -> QueuePolicy:
        """What the code says about a queue; the retry policy of the configuration file is above the code's."""
        policy = self._queues.get(name, self._plain_queue)
        configured = self._configuration.queue_retries.get(name)
        if configured is None:
            return policy
        return msgspec.structs.replace(policy, retry=configured, retry_place=self._configuration.file)

    def _known(self, name: str) -> Task[..., Any]:
        task = self._find(name)
        if task is None:
            known = ", ".join(sorted(self._tasks)) or "none"
            raise UnknownTask(f"No task is named {name!r}.", f"Registered tasks: {known}.")
        return task

    def _find(self, name: str) -> Task[..., Any] | None:
        return self._tasks.get(name) or self._builtins.get(name)


def _plain_job(task: Task[..., Any], now: datetime) -> Job:
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


_named: set[str] = set()
_MOST_NAMED = 1000
"""How many unreadable policies are remembered as named in the log."""


def _name_unreadable(text: str, job_id: str) -> None:
    """Say once that a policy cannot be read, with the first job that has it."""
    if text not in _named:
        if len(_named) >= _MOST_NAMED:
            _named.clear()
        _named.add(text)
        _log.warning(
            "The retry policy %.80r of job %s cannot be read; the policy of its task, queue or app holds.", text, job_id
        )
