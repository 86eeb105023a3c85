"""A task's function as the runtime calls it, and the translation of whatever it does into an ending."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Literal, Protocol

import msgspec

from perdure.errors import BadDuration, BadPayload, Cancel, GiveUp, RetryAfter, Snooze
from perdure.model.failure import capture, clean
from perdure.model.job import Job
from perdure.model.outcome import (
    AskedToWait,
    Cancelled,
    Ending,
    GaveUp,
    Raised,
    Returned,
    Snoozed,
    TimedOut,
    Undecodable,
    Vanished,
)
from perdure.model.payload.codec import decode_args, encode_result
from perdure.model.policy.resolve import Policy
from perdure.model.queue.fairness import Fairness
from perdure.model.queue.settings import QueueSettings
from perdure.text.duration import Duration, parse_duration

Kind = Literal["async", "thread", "process"]

_NOTHING = Returned()


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """A task's function and how it is to be run."""

    task: str
    function: Callable[..., Any]
    kind: Kind
    is_async: bool
    reference: tuple[str, str] | None
    """(module, qualified name), by which a child process finds the function; None if it cannot be found so."""
    max_payload: int
    max_result: int

    @classmethod
    def of(
        cls, task: str, function: Callable[..., Any], *, is_process: bool, max_payload: int, max_result: int
    ) -> Handler:
        """The handler that a function is: on the loop, in a thread, or in a child process."""
        is_async = inspect.iscoroutinefunction(function)
        module = getattr(function, "__module__", None)
        name = getattr(function, "__qualname__", "<locals>")
        return cls(
            task=task,
            function=function,
            kind="process" if is_process else "async" if is_async else "thread",
            is_async=is_async,
            reference=None if module is None or "<" in name else (module, name),
            max_payload=max_payload,
            max_result=max_result,
        )

    def arguments(self, job: Job) -> tuple[list[Any], dict[str, Any]]:
        """The job's arguments; raises BadPayload."""
        return decode_args(job.args, self.max_payload)

    def returned(self, value: object) -> Returned:
        """The ending of a handler that returned `value`; a result that cannot be stored costs the result only."""
        if value is None:
            return _NOTHING
        try:
            return Returned(result=encode_result(value, self.max_result))
        except BadPayload as error:
            return Returned(note=clean(f"result not stored: {error}", 500))
        except Exception as error:  # a hostile object may raise anything while it is looked at
            return Returned(note=clean(f"result not stored: {type(error).__name__}", 500))

    def raised(self, error: BaseException, job: Job) -> Ending:
        """The ending of a handler that raised `error`."""
        match error:
            case Snooze():
                return _with_delay(error.delay, lambda delay: Snoozed(delay=delay))
            case RetryAfter():
                return _with_delay(error.delay, lambda delay: AskedToWait(delay=delay, error=capture(error)))
            case GiveUp():
                return GaveUp(error=capture(error))
            case Cancel():
                return Cancelled(error=capture(error))
            case TypeError() if self._misfits(error, job):
                return Undecodable(detail=clean(f"the arguments do not fit the handler: {error}", 500))
            case _:
                return Raised(error=capture(error))

    def _misfits(self, error: TypeError, job: Job) -> bool:
        """Whether the call itself failed: the function was never entered because its parameters are other ones."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is getattr(self.function, "__code__", None):
                return False
            trace = trace.tb_next
        try:
            positional, named = self.arguments(job)
            inspect.signature(self.function).bind(*positional, **named)
        except TypeError:
            return True
        except (BadPayload, ValueError):
            return False
        return False


class Registry(Protocol):
    """What the runtime asks of the app: handlers, policies and queues by name."""

    def handler(self, task: str) -> Handler | None: ...

    def task_names(self) -> tuple[str, ...]: ...

    def policy(self, job: Job) -> Policy: ...

    def fairness(self, queue: str, operator: QueueSettings = ...) -> Fairness: ...

    def homes(self, queues: Iterable[str]) -> tuple[str, ...]: ...

    async def release(self) -> None: ...


def is_isolated(job: Job, handler: Handler) -> bool:
    """Whether a worker runs the next attempt of this job alone in a child process.

    A job that was ever lost with its worker stays a suspect: one that failed or timed out in its child would otherwise
    bring the next worker down.
    """
    return handler.reference is not None and (handler.kind == "process" or job.reason == "lost" or job.recoveries > 0)


def is_bystander(job: Job, handler: Handler | None) -> bool:
    """Whether the loss of the worker that runs this attempt is hardly the attempt's fault.

    An earlier loss has made the job a suspect, so that it runs in a child process and cannot hold up the worker.
    """
    return handler is not None and job.recoveries > 0 and is_isolated(job, handler)


def suspected(ending: TimedOut | Raised, job: Job, handler: Handler | None) -> Ending:
    """How an attempt ended that failed after the lease of its worker had run out.

    [INV-8] Something held up the whole process, and this attempt may be what did. It counts among those that were lost
    with their worker, so that it does not run in a worker's own process again.
    """
    if isinstance(ending, TimedOut):
        late = f"the attempt past its timeout of {ending.timeout.total_seconds():g} s"
        detail = f"its worker was held up past its lease, and {late}"
        return Vanished(detail=detail, is_bystander=is_bystander(job, handler))
    is_suspect = handler is None or not is_isolated(job, handler)
    return msgspec.structs.replace(ending, is_suspect=is_suspect)


def read_delay(delay: Duration) -> timedelta | None:
    """The delay that an error asks for; None when it cannot be read."""
    try:
        return parse_duration(delay, what="the delay")
    except BadDuration:
        return None


def _with_delay(delay: Duration, make: Callable[[timedelta], Ending]) -> Ending:
    try:
        return make(parse_duration(delay, what="the delay"))
    except BadDuration as error:
        return Raised(error=capture(error))
