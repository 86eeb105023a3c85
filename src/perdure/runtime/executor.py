"""Runs attempts: takes jobs from the buffer into its slots, enters their handlers, and hands the outcomes on.

A slot waits for a job in the buffer, runs it to its end, passes what `decide` says to the committer, and takes the
next. It stops when it is cancelled while waiting. Nothing that a handler does ends a slot.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any, Protocol

from perdure.errors import BadPayload
from perdure.model.decide import decide, spent
from perdure.model.event import AttemptEnded, Tracing
from perdure.model.failure import capture, clean
from perdure.model.job import Job
from perdure.model.outcome import Cancelled, Ending, Raised, ShutDown, TaskUnknown, TimedOut, Undecodable
from perdure.model.policy.resolve import Policy
from perdure.runtime.children.entry import Entry
from perdure.runtime.children.pool import Children
from perdure.runtime.committer import to_ended
from perdure.runtime.context import Entered, running
from perdure.runtime.handler import Handler, Registry, is_isolated, suspected
from perdure.runtime.in_flight import Holding
from perdure.runtime.liveness import fork_guard
from perdure.runtime.threads import Interrupted, Threads
from perdure.runtime.timeout import OutOfTime, within
from perdure.store.jobs import Ended, JobStore
from perdure.system.clock import Clock
from perdure.system.exhaustion import is_exhaustion
from perdure.system.log_limit import LogLimit

_TURN = 0.005
"""How long slots may run jobs that never wait before the rest of the worker gets its turn."""


_DOUBT = 0.02
"""How often a slot asks again whether the lease is trusted."""

_SUSPECTS = 4
"""How many suspects may be run in children at once: each costs a process."""

_NO_CHILD = 0.2
"""How many seconds to wait before a child is tried again that could not be started."""

_log = logging.getLogger("perdure")
_warnings = LogLimit()


class Source(Protocol):
    """Where the slots find their jobs."""

    async def get(self) -> Holding: ...


class Executor:
    """The slots of one worker."""

    def __init__(
        self,
        *,
        registry: Registry,
        clock: Clock,
        random: Random,
        store: JobStore | None = None,
        isolates: bool = True,
        tracing: Tracing | None = None,
        start: Callable[[Job], Awaitable[bool]] | None = None,
        entry: Entry | None = None,
    ) -> None:
        """`start` records that an at-most-once job is about to enter its handler, and says whether it may."""
        self._registry = registry
        self._store = store
        self._clock = clock
        self._random = random
        self._isolates = isolates
        self._tracing = tracing
        self._start = start
        self._threads = Threads()
        self._children = Children(entry)
        self._suspects = asyncio.Semaphore(_SUSPECTS)
        self._turn_began = 0.0
        self.busy = 0
        """How many slots are running an attempt."""
        self.finished = 0
        """How many attempts have ended since the start; the fetcher measures the pace with it."""

    async def serve(
        self,
        buffer: Source,
        hand_on: Callable[[AttemptEnded], None],
        may_start: Callable[[], bool],
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """One slot: run what the buffer brings, until it is cancelled and `is_cancelled` says the same of the worker.

        A handler may cancel its own task, which is the slot's. That must not end the slot.
        """
        loop, slot = asyncio.get_running_loop(), asyncio.current_task()
        while True:
            holding = await buffer.get()
            if not may_start():
                await _until_sure(holding, may_start)
            if holding.interrupt == "lease":
                continue
            self.busy += 1
            try:
                finished = await self.run(holding, may_start, slot)
            except MemoryError as error:
                # Not the handler's own, which ends its attempt in the ordinary way: the slot itself ran short.
                finished = self._failed(holding.job, error)
            finally:
                self.busy -= 1
                self.finished += 1
            if slot is not None and slot.cancelling():
                if is_cancelled() and not holding.is_broken_off():
                    return  # what became of the attempt is unknown: it is left to be found as lost
                await _absorb_cancellation(slot)
            if finished is not None:
                hand_on(finished)
            now = loop.time()
            if now - self._turn_began > _TURN:
                await asyncio.sleep(0)
                self._turn_began = loop.time()

    async def run(
        self,
        holding: Holding,
        may_start: Callable[[], bool] = lambda: True,
        runner: asyncio.Task[None] | None = None,
    ) -> AttemptEnded | None:
        """Run one attempt to its end; None when its lease was lost, so that nobody waits for the outcome."""
        job = holding.job
        policy = self._registry.policy(job)
        started_at = self._clock.now()
        holding.runner = runner or asyncio.current_task()
        trace = None if self._tracing is None else self._tracing.begin(job)
        outcome = None
        try:
            ending = await self._attempt(holding, policy, started_at, may_start)
            if holding.interrupt == "lease":
                return None
            if isinstance(ending, TimedOut | Raised) and not may_start():
                ending = suspected(ending, job, self._registry.handler(job.task))
            ended_at = self._clock.now()
            if ended_at < started_at:
                ended_at = started_at  # the clock was set back meanwhile, and no attempt takes less than no time
            outcome = decide(job, ending, policy, ended_at, self._random)
        finally:
            holding.runner = None
            if trace is not None:
                trace.end(outcome)
        return AttemptEnded(job=job, outcome=outcome, limit=policy.limit, started_at=started_at, ended_at=ended_at)

    def _failed(self, job: Job, error: MemoryError) -> AttemptEnded:
        now, policy = self._clock.now(), self._registry.policy(job)
        outcome = decide(job, Raised(error=capture(error)), policy, now, self._random)
        return AttemptEnded(job=job, outcome=outcome, limit=policy.limit, started_at=now, ended_at=now)

    def ended(self, job: Job, started_at: datetime, result: object) -> Ended:
        """The end of an attempt whose handler lets it succeed in a transaction of its own."""
        handler, policy, ended_at = self._registry.handler(job.task), self._registry.policy(job), self._clock.now()
        assert handler is not None, "a handler that runs is known"
        outcome = decide(job, handler.returned(result), policy, ended_at, self._random)
        event = AttemptEnded(job=job, outcome=outcome, limit=policy.limit, started_at=started_at, ended_at=ended_at)
        return to_ended(event)

    def close(self) -> None:
        """Let threads and children go."""
        self._threads.close()
        self._children.close()

    async def _attempt(self, holding: Holding, policy: Policy, now: datetime, may_start: Callable[[], bool]) -> Ending:
        """Enter the handler in the way its kind asks for, and say how that ended."""
        job = holding.job
        if holding.interrupt is not None:
            return _interrupted(holding, has_started=False)
        handler = self._registry.handler(job.task)
        if handler is None:
            return TaskUnknown()
        over = spent(job, policy, now)
        if over is not None:
            return over
        try:
            positional, named = handler.arguments(job)
        except BadPayload as error:
            return Undecodable(detail=clean(str(error), 500))
        if job.delivery == "at_most_once" and (refusal := await self._enter(holding)) is not None:
            return refusal
        entered = Entered(job, policy.limit, policy.timeout, now, self._store, self)
        token = running.set(entered)
        try:
            if self._isolates and is_isolated(job, handler):
                return await self._isolate(holding, handler, policy, may_start)
            if not handler.is_async:
                return await self._thread(handler, job, positional, named, policy.timeout)
            work = handler.function(*positional, **named)
            if policy.timeout is None:
                return handler.returned(await work)
            return handler.returned(await within(policy.timeout.total_seconds(), work))
        except Interrupted:  # the watchdog broke it off, since it blocked the event loop past its timeout
            assert policy.timeout is not None, "only a limit runs out"
            return TimedOut(timeout=policy.timeout)
        except OutOfTime as late:
            assert policy.timeout is not None, "only a limit runs out"
            return TimedOut(timeout=policy.timeout, doing=_noted(late.__cause__))
        except asyncio.CancelledError as error:
            if not holding.is_broken_off():
                return handler.raised(error, job)
            _uncancel()
            return _interrupted(holding, has_started=True)
        except BaseException as error:  # SystemExit and KeyboardInterrupt from a handler end its attempt only
            fork_guard.leave_copy(entered, error)
            return handler.raised(error, job)
        finally:
            if fork_guard.copied is entered:
                fork_guard.leave_copy(entered)
            running.reset(token)

    async def _enter(self, holding: Holding) -> Ending | None:
        """Record that the handler is about to be entered; returns how the attempt ended if it may not be.

        [INV-5] The record is durable before the handler runs, so that a job without it may be given back.
        """
        if self._start is None:
            return None
        try:
            may_enter = await self._start(holding.job)
        except asyncio.CancelledError:
            if not holding.is_broken_off():
                raise
            _uncancel()
            may_enter = True
        if holding.interrupt is not None:
            return _interrupted(holding, has_started=False)
        # Where the fence does not match any more, the commit of this ending is refused too.
        return None if may_enter else ShutDown(has_started=False)

    async def _isolate(
        self, holding: Holding, handler: Handler, policy: Policy, may_start: Callable[[], bool]
    ) -> Ending:
        """Run the attempt in a child process.

        [INV-8] So that a job that kills its worker takes no other job with it a second time, one that was ever lost
        with its worker runs alone in a child: if it kills, it kills nobody else.
        """

        room = contextlib.nullcontext() if handler.kind == "process" else self._suspects
        async with room:
            while True:
                try:
                    return await self._children.run(
                        holding.job, handler, policy.limit, policy.timeout, lambda: _until_sure(holding, may_start)
                    )
                except OSError as error:
                    if not is_exhaustion(error):
                        raise
                    _warnings.warn(_log, "No child process can be started for a job, which waits for it: %s", error)
                # The attempt has not begun, so it must not be counted as a failure of the job.
                await asyncio.sleep(_NO_CHILD)

    async def _thread(
        self, handler: Handler, job: Job, positional: list[Any], named: dict[str, Any], timeout: timedelta | None
    ) -> Ending:
        call = self._threads.start(lambda: handler.function(*positional, **named), contextvars.copy_context())
        try:
            if timeout is None:
                value, error = await call.future
            else:
                async with asyncio.timeout(timeout.total_seconds()):
                    value, error = await call.future
        except TimeoutError:
            assert timeout is not None
            self._threads.abandon(call)
            return TimedOut(timeout=timeout)
        except asyncio.CancelledError:
            self._threads.abandon(call)
            raise
        return handler.returned(value) if error is None else handler.raised(error, job)


async def _until_sure(holding: Holding, may_start: Callable[[], bool]) -> None:
    """[INV-7] No attempt starts under a lease in doubt: either the next beat renews it, or it is lost."""
    while not may_start() and not holding.is_broken_off():
        await asyncio.sleep(_DOUBT)


async def _absorb_cancellation(slot: asyncio.Task[Any]) -> None:
    """Forget every cancellation of the slot's task that is pending: it was meant for an attempt that has ended."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while slot.cancelling():
        slot.uncancel()


def _uncancel() -> None:
    slot = asyncio.current_task()
    assert slot is not None, "an attempt always runs in a slot's task"
    slot.uncancel()


def _noted(broken_off: BaseException | None) -> str:
    """What the handler added to the cancellation on its way out: what it was doing."""
    notes = getattr(broken_off, "__notes__", None)
    return clean("; ".join(note for note in notes if isinstance(note, str)), 300) if isinstance(notes, list) else ""


def _interrupted(holding: Holding, *, has_started: bool) -> Ending:
    return Cancelled() if holding.interrupt == "cancel" else ShutDown(has_started=has_started)
