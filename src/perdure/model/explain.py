"""Says in words which policy holds for a job or a task, each value with the place it comes from."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from perdure.duration import format_duration
from perdure.model.resolve import Policy
from perdure.model.retry import Retry

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
    lines: tuple[Line, ...]
    delays: tuple[timedelta, ...]
    """The delays before retry 1, 2, 3… before jitter, up to the limit, ten at most."""


def explain(subject: str, policy: Policy, *, queue: str, delivery: str, delivery_origin: str) -> Explanation:
    """Put a policy into words."""
    retry = policy.retry
    delays = tuple(retry.ceiling(n) for n in range(1, min(policy.limit, _SHOWN + 1)))
    recoveries = "unlimited" if retry.max_recoveries is None else str(retry.max_recoveries)
    lines = [
        Line(name="queue", value=queue, origin="task or job"),
        Line(name="delivery", value=delivery.replace("_", " "), origin=delivery_origin),
        Line(name="retry", value=str(retry), origin=policy.retry_origin),
        Line(name="max_attempts", value=str(policy.limit), origin=policy.limit_origin),
        Line(name="max_retries", value=str(policy.limit - 1), origin=policy.limit_origin),
        Line(name="within", value=_duration(retry.within, "no limit"), origin=policy.retry_origin),
        Line(name="max_recoveries", value=recoveries, origin=policy.retry_origin),
        Line(name="timeout", value=_duration(policy.timeout, "none"), origin=policy.timeout_origin or "unset"),
        Line(name="retry_queue", value=policy.retry_queue or "none: retries stay", origin="queue"),
    ]
    return Explanation(subject=subject, retry=retry, limit=policy.limit, lines=tuple(lines), delays=delays)


def _duration(value: timedelta | None, otherwise: str) -> str:
    return otherwise if value is None else format_duration(value)
