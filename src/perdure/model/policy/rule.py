"""The rules of a retry policy: what a single error changes about it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from perdure.errors import BadPolicy
from perdure.model.policy.curve import usual_limit
from perdure.model.policy.option import read_delay
from perdure.text.shown import shown

if TYPE_CHECKING:
    from perdure.model.policy.retry import Retry


class Never(msgspec.Struct, frozen=True, tag=True):
    """This error is never retried."""


class UsePolicy(msgspec.Struct, frozen=True, tag=True):
    """After this error the delay comes from another policy; its max_attempts, unless the usual one, bounds as well."""

    policy: Retry

    @property
    def limit(self) -> int | None:
        """The limit that this rule puts on the job; None where its policy was written for the delays alone."""
        policy = self.policy
        # A policy that names no limit has the usual one, which must not cut the job's own short.
        is_named = policy.caps_jobs or policy.max_attempts != usual_limit(policy.curve)
        return policy.max_attempts if is_named else None


class UseDelay(msgspec.Struct, frozen=True, tag=True):
    """After this error the delay is this one, without jitter."""

    delay: timedelta


Rule = Never | UsePolicy | UseDelay


def read_rule(what: object) -> Rule:
    """The rule that the last argument of `on()` describes: a policy, its text, or a delay."""
    from perdure.model.policy.retry import Retry  # policies are built from rules

    if isinstance(what, str) and not what.strip()[:1].isdigit():
        what = Retry.parse(what)
    if isinstance(what, Retry):
        if what.rules:
            raise BadPolicy("The policy given to on() has rules.", "Put all rules on the outer policy.")
        return UsePolicy(what)
    if isinstance(what, str | int | float | timedelta):
        return UseDelay(read_delay("delay", what))
    raise BadPolicy(
        f"on() ends with a policy or a delay, not with {shown(what)}.",
        'Such as .on(TimeoutError, "30s"); for no retry at all use .never(…).',
    )
