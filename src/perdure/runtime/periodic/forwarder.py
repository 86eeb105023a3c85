"""Forwards dead jobs to their sinks: claims what is due, hands each job to its sink, and writes down what came of it.

It looks when a job has died here, when a try has ended, and when the next forward is due; any number of workers may do
so at once. Each try has a task and a time limit of its own, so a sink that hangs keeps others waiting for a place only.
When the worker stops, tries under way get a moment to end. What was not written down is due again when its claim runs
out: a sink may get a job twice, and never not at all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

from perdure.errors import RetryAfter
from perdure.model.event import Forwarded, ForwardFailed, Observer
from perdure.model.failure import capture, clean
from perdure.model.forward import NOWHERE, Forward, Tried
from perdure.model.job import Attempt, Job
from perdure.model.policy.retry import Retry
from perdure.runtime.backoff import is_outage
from perdure.runtime.handler import read_delay
from perdure.runtime.periodic.loop import NotAsked
from perdure.store import Store
from perdure.system.clock import LOOK_EVERY, Clock
from perdure.text.duration import format_duration

_OF_A_QUEUE = 8
"""How many tries of one queue are claimed at once; so a hanging sink leaves places to others."""
_AT_ONCE = 64
_HISTORY = 20
"""How many of the newest attempts a sink is told of."""
_MARGIN = timedelta(seconds=5)
_SELDOM = 30.0
"""How many seconds to wait between looks where no sink is configured at all."""
_LAST_MOMENT = 2.0
_SHORTEST_DELAY = timedelta(milliseconds=10)
_LONGEST_ERROR = 1000


class Destination(Protocol):
    """A sink that jobs can be handed to."""

    @property
    def name(self) -> str: ...

    @property
    def retry(self) -> Retry: ...

    @property
    def timeout(self) -> timedelta: ...

    async def accept(self, job: Job, history: Sequence[Attempt], number: int) -> None:
        """Take the job, this being try `number`; raises when it does not."""
        ...


class Sinks(Protocol):
    """What the forwarder asks of the app."""

    @property
    def retry(self) -> Retry:
        """The policy for jobs that have no sink here."""
        ...

    @property
    def max_retry_after(self) -> timedelta: ...

    def is_empty(self) -> bool:
        """Whether no sink is configured at all."""
        ...

    def timeout(self, queue: str) -> timedelta:
        """How long a try to forward a dead job of this queue may take."""
        ...

    def of(self, job: Job) -> Destination | None: ...


class Forwarder:
    """Calls forward and forwarded."""

    def __init__(
        self,
        *,
        store: Store,
        sinks: Sinks,
        clock: Clock,
        random: Random,
        observer: Observer,
        queues: Sequence[str],
        poll: float,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._sinks = sinks
        self._clock = clock
        self._random = random
        self._observer = observer
        self._queues = tuple(queues)
        self._poll = poll
        self._ended = ended
        self._busy: Counter[str] = Counter()
        self._tries: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def step(self) -> float:
        """Begin the tries that are due and have a place; the seconds until the next look."""
        queues = [queue for queue in self._queues if self._busy[queue] < _OF_A_QUEUE]
        pause = max(self._poll, _SELDOM) if self._sinks.is_empty() else self._poll
        has_asked = False
        for lease, alike in self._by_lease(queues).items():
            limit = min(_OF_A_QUEUE, _AT_ONCE - len(self._tries))
            if limit <= 0:
                return self._poll if has_asked else NotAsked(self._poll)
            due = await self._store.forward(alike, limit, lease)
            has_asked = True
            await self._begin(due.forwards)
            if len(due.forwards) == limit:
                pause = 0.0
            elif due.next_at is not None:
                pause = min(pause, self._until(due.next_at))
        return pause if has_asked else NotAsked(pause)

    async def drain(self) -> tuple[int, datetime | None]:
        """Try all that is due now and wait for it: how many tries, and when the next one is due."""
        count = 0
        moments = []
        for lease, alike in self._by_lease(self._queues).items():
            while (due := await self._store.forward(alike, _AT_ONCE, lease)).forwards:
                count += len(due.forwards)
                await asyncio.wait(await self._begin(due.forwards))
            moments.append(due.next_at)
        return count, min((moment for moment in moments if moment is not None), default=None)

    async def close(self) -> None:
        """Let the tries under way end, for a moment; what they leave undone is due again by itself."""
        if self._tries:
            await asyncio.wait(self._tries, timeout=_LAST_MOMENT)
        self._is_closing = True
        left = set(self._tries)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_LAST_MOMENT)

    async def _begin(self, forwards: Sequence[Forward]) -> set[asyncio.Task[None]]:
        jobs = await self._store.get([forward.job_id for forward in forwards]) if forwards else []
        begun = set()
        for forward, job in zip(forwards, jobs, strict=True):
            task = asyncio.create_task(self._try(forward, job))
            self._busy[forward.queue] += 1
            begun.add(task)
        self._tries |= begun
        return begun

    async def _try(self, forward: Forward, job: Job | None) -> None:
        lease = self._lease(forward.queue)
        try:
            if job is None or job.state != "dead" or job.attempt != forward.attempt:
                await self._write(_told(forward, None, "the job is not dead any more", None), lease)
                return
            tried = await self._hand_over(forward, job)
            if await self._write(tried, lease):
                self._tell(tried, job)
        except Exception as error:
            if not is_outage(error):
                raise
            # The job was not handed over: it is due again when the claim runs out.
        finally:
            self._busy[forward.queue] -= 1
            task = asyncio.current_task()
            assert task is not None, "a try always runs in a task of its own"
            self._tries.discard(task)
            self._ended()

    async def _hand_over(self, forward: Forward, job: Job) -> Tried:
        sink = self._sinks.of(job)
        if sink is None:
            error = f"no dead_letter is configured for the queue {forward.queue!r} here"
            return _told(forward, None, error, self._delay(self._sinks.retry, forward))
        history = await self._store.history(job.id, _HISTORY)
        try:
            async with asyncio.timeout(sink.timeout.total_seconds()) as limit:
                await sink.accept(job, history, forward.tries)
        except TimeoutError as error:
            late = f"it did not accept the job within {format_duration(sink.timeout)}"
            reason = late if limit.expired() else _said(error)
            return _told(forward, sink.name, reason, self._delay(sink.retry, forward))
        except BaseException as error:  # whatever a function raises, SystemExit included, is a refusal and no more
            if isinstance(error, asyncio.CancelledError) and self._is_closing:
                raise
            asked = read_delay(error.delay) if isinstance(error, RetryAfter) else None
            return _told(forward, sink.name, _said(error), self._delay(sink.retry, forward, asked))
        return _told(forward, sink.name, None, None)

    def _delay(self, retry: Retry, forward: Forward, asked: timedelta | None = None) -> timedelta | None:
        """How long to wait before the next try; None when there is to be none."""
        if forward.tries >= retry.max_attempts:
            return None
        # Never at once: a policy without delays would keep asking a sink that is down.
        delay = max(retry.delay(forward.tries, self._random), _SHORTEST_DELAY)
        return delay if asked is None else max(delay, min(asked, self._sinks.max_retry_after))

    async def _write(self, tried: Tried, lease: timedelta) -> bool:
        """Write down what came of a try, however often the store has to be asked while the claim lasts."""
        until = self._clock.monotonic() + lease.total_seconds()
        while True:
            try:
                (accepted,) = await self._store.forwarded([tried])
            except Exception as error:
                if not is_outage(error):
                    raise
                if self._clock.monotonic() >= until:
                    return False
                await asyncio.sleep(min(self._poll, 1.0))
                continue
            return accepted

    def _tell(self, tried: Tried, job: Job) -> None:
        queue, sink = job.origin or job.queue, tried.sink or NOWHERE.name
        event: Forwarded | ForwardFailed
        if tried.error is None:
            event = Forwarded(
                job=job.id, task=job.task, queue=queue, sink=sink, tries=tried.number, schedule=job.schedule
            )
        else:
            event = ForwardFailed(
                job=job.id,
                task=job.task,
                queue=queue,
                sink=sink,
                error=tried.error,
                tries=tried.number,
                retry_in=tried.delay,
                schedule=job.schedule,
            )
        self._observer.tell(event)

    def _by_lease(self, queues: Sequence[str]) -> dict[timedelta, list[str]]:
        """The queues by how long a claim of theirs holds: one claim takes those for which that is the same."""
        found: dict[timedelta, list[str]] = {}
        for queue in queues:
            found.setdefault(self._lease(queue), []).append(queue)
        return found

    def _lease(self, queue: str) -> timedelta:
        """How long a claim holds: as long as a try may take, and a little for writing it down."""
        timeout = self._sinks.timeout(queue)
        return timeout + min(timeout, _MARGIN)

    def _until(self, moment: datetime) -> float:
        """The seconds until a moment that has not come by the store's clock."""
        until = (moment - self._clock.now()).total_seconds()
        # Far past by the clock of this machine: the two clocks differ, and only the store's counts.
        return LOOK_EVERY if until < -LOOK_EVERY else min(LOOK_EVERY, max(until, 0.001))


def _told(forward: Forward, sink: str | None, error: str | None, delay: timedelta | None) -> Tried:
    return Tried(
        job_id=forward.job_id,
        attempt=forward.attempt,
        number=forward.tries,
        sink=sink,
        error=error,
        delay=delay,
    )


def _said(error: BaseException) -> str:
    """What the error says, on one line: it stands in log lines and tables."""
    return clean(" ".join(str(capture(error)).split()), _LONGEST_ERROR)
