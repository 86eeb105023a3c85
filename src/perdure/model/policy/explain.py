"""Says in words which policy holds for a job or a task, each value with the place it comes from."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from perdure.model.forward import Sink
from perdure.model.policy.limit_choice import ExplainedLimit, explain_limits
from perdure.model.policy.resolve import Policy
from perdure.model.policy.retry import Retry
from perdure.model.queue.settings import EffectiveQueue, QueueOrigin
from perdure.text.duration import format_duration

_SHOWN = 10


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One value and its origin."""

    name: str
    value: str
    origin: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The effective policy of a task or a job."""

    subject: str
    retry: Retry
    limit: int
    limits: tuple[ExplainedLimit, ...]
    """Every place that names a limit, which of them holds, and why."""
    lines: tuple[Line, ...]
    delays: tuple[timedelta, ...]
    """The delays before retry 1, 2, 3… before jitter, up to the limit, ten at most."""
    sink: Sink | None = None
    """Where the job goes when it dies."""


def explain(
    subject: str, policy: Policy, *, queue: str, treated: EffectiveQueue, delivery: str, delivery_origin: str
) -> Explanation:
    """Put a policy, and how the job's queue is treated, into words."""
    retry = policy.retry
    delays = tuple(retry.ceiling(n) for n in range(1, min(policy.limit, _SHOWN + 1)))
    recoveries = "unlimited" if retry.max_recoveries is None else str(retry.max_recoveries)
    retry_origin = policy.choice.policy.label
    limits = explain_limits(policy.choice)
    limit_origin = next(each.origin for each in limits if each.is_effective)
    lines = [
        Line(name="queue", value=queue, origin="task or job"),
        Line(name="delivery", value=delivery.replace("_", " "), origin=delivery_origin),
        Line(name="retry", value=str(retry), origin=retry_origin),
        Line(name="max_attempts", value=str(policy.limit), origin=limit_origin),
        Line(name="max_retries", value=str(policy.limit - 1), origin=limit_origin),
        Line(name="within", value=_duration(retry.within, "no limit"), origin=retry_origin),
        Line(name="max_recoveries", value=recoveries, origin=retry_origin),
        Line(name="timeout", value=_duration(policy.timeout, "none"), origin=policy.timeout_origin or "unset"),
        Line(name="retry_queue", value=policy.retry_queue or "none: retries stay", origin="queue"),
        Line(name="dead_letter", value=_sink(policy.sink), origin=policy.sink_origin or "unset"),
        *queue_lines(treated),
    ]
    return Explanation(
        subject=subject,
        retry=retry,
        limit=policy.limit,
        limits=limits,
        lines=tuple(lines),
        delays=delays,
        sink=policy.sink,
    )


def queue_lines(queue: EffectiveQueue) -> tuple[Line, ...]:
    """How a queue is treated, each value with the place it comes from."""
    fairness = queue.fairness
    values = {
        "retry_share": f"{fairness.retry_share:g}",
        "is_strict": "yes" if fairness.is_strict else "no",
        "max_retries_running": _limit(fairness.max_retries_running),
        "concurrency": _limit(fairness.concurrency),
    }
    return tuple(
        Line(name="strict" if name == "is_strict" else name, value=value, origin=queue.origins[name])
        for name, value in values.items()
    )


def retry_line(retry: Retry | None, origin: QueueOrigin) -> Line:
    """The queue's own retry policy and the place it comes from."""
    return Line(name="retry", value="none: the app's" if retry is None else str(retry), origin=origin)


def _sink(sink: Sink | None) -> str:
    return "none: dead jobs stay" if sink is None else sink.name


def _limit(limit: int | None) -> str:
    return "none" if limit is None else str(limit)


def _duration(value: timedelta | None, otherwise: str) -> str:
    return otherwise if value is None else format_duration(value)
