"""Retry policies as data: when a failed job runs again, how often, and what single errors change about it.

A policy is a frozen value: comparable, hashable, with a text form that people read and jobs store. Build it
with the constructors, which check what they are given.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import msgspec
from msgspec import UNSET, UnsetType

from perdure.errors import BadPolicy
from perdure.model.policy.curve import (
    LONGEST_DELAY,
    Curve,
    Delays,
    Exponential,
    Fixed,
    Function,
    Linear,
    usual_limit,
    wait_after,
)
from perdure.model.policy.jitter import Jitter, pick, read_jitter, spread
from perdure.model.policy.limit import DEFAULT_LIMIT, HIGHEST_LIMIT, Limit, read_limit, read_recoveries
from perdure.model.policy.option import (
    ErrorName,
    error_names,
    read_delay,
    read_delays,
    read_duration,
    read_factor,
    read_truth,
    refuse_zero,
)
from perdure.model.policy.rule import Never, Rule, UseDelay, UsePolicy, read_rule
from perdure.text.duration import Duration
from perdure.text.shown import shown

__all__ = ["HIGHEST_LIMIT", "Never", "Retry", "Rule", "UseDelay", "UsePolicy"]


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """When a failed job runs again, and how often."""

    curve: Curve
    jitter: Jitter = "none"
    cap: timedelta | None = None
    """No delay is longer, jitter included unless `jitter_over_cap`."""
    max_attempts: int = DEFAULT_LIMIT
    within: timedelta | None = None
    """No attempt starts later than so long after the job was enqueued."""
    max_recoveries: int | None = 0
    """How many attempts may be lost to vanished workers without being counted; None: all of them."""
    jitter_over_cap: bool = False
    caps_jobs: bool = False
    """Whether no job may ask for more than `max_attempts`, by a limit or by a policy of its own."""
    rules: tuple[tuple[str, Rule], ...] = ()
    """What single errors change, by the error's name, sorted."""

    @staticmethod
    def exponential(
        base: Duration,
        factor: float = 2,
        cap: Duration | None = None,
        jitter: Jitter = "full",
        *,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        within: Duration | None = None,
        max_recoveries: int | None = 0,
        jitter_over_cap: bool = False,
        caps_jobs: bool = False,
    ) -> Retry:
        """base, base × factor, base × factor², …"""
        curve = Exponential(read_delay("base", base), read_factor(factor))
        return _build(curve, jitter, cap, max_attempts, max_retries, within, max_recoveries, jitter_over_cap, caps_jobs)

    @staticmethod
    def fixed(
        every: Duration,
        jitter: Jitter = 0.15,
        *,
        cap: Duration | None = None,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        within: Duration | None = None,
        max_recoveries: int | None = 0,
        jitter_over_cap: bool = False,
        caps_jobs: bool = False,
    ) -> Retry:
        """The same delay every time; `fixed(0)` retries at once, and nothing spreads a delay of zero."""
        curve = Fixed(read_delay("every", every))
        return _build(curve, jitter, cap, max_attempts, max_retries, within, max_recoveries, jitter_over_cap, caps_jobs)

    @staticmethod
    def linear(
        step: Duration,
        cap: Duration | None = None,
        jitter: Jitter = "full",
        *,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        within: Duration | None = None,
        max_recoveries: int | None = 0,
        jitter_over_cap: bool = False,
        caps_jobs: bool = False,
    ) -> Retry:
        """step, 2 × step, 3 × step, …"""
        curve = Linear(read_delay("step", step))
        return _build(curve, jitter, cap, max_attempts, max_retries, within, max_recoveries, jitter_over_cap, caps_jobs)

    @staticmethod
    def delays(
        waits: Sequence[Duration],
        jitter: Jitter = "none",
        *,
        cap: Duration | None = None,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        within: Duration | None = None,
        max_recoveries: int | None = 0,
        jitter_over_cap: bool = False,
        caps_jobs: bool = False,
    ) -> Retry:
        """These delays one by one; the last repeats. The usual limit is enough attempts to use them all, at least 4."""
        curve = Delays(read_delays(waits))
        return _build(curve, jitter, cap, max_attempts, max_retries, within, max_recoveries, jitter_over_cap, caps_jobs)

    @staticmethod
    def function(
        call: Callable[[int], Duration],
        jitter: Jitter = "none",
        *,
        cap: Duration | None = None,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        within: Duration | None = None,
        max_recoveries: int | None = 0,
        jitter_over_cap: bool = False,
        caps_jobs: bool = False,
    ) -> Retry:
        """Whatever a Python function gives for n; for tasks only, as a function cannot be stored on a job."""
        if not callable(call):
            raise BadPolicy(f"function needs a function from n to a delay, not {shown(call)}.")
        curve = Function(call)
        return _build(curve, jitter, cap, max_attempts, max_retries, within, max_recoveries, jitter_over_cap, caps_jobs)

    @staticmethod
    def never_retry() -> Retry:
        """One attempt, no retry."""
        return Retry.fixed(0, max_attempts=1)

    @staticmethod
    def preset(name: str) -> Retry:
        """The policy of a preset; `perdure policy ls` shows them all."""
        from perdure.model.policy.presets import find_preset  # presets are built from policies

        return find_preset(name).policy

    @staticmethod
    def parse(text: str) -> Retry:
        """The policy that a text describes: a preset's name, or what `.text` gives."""
        from perdure.model.policy.parser import parse_policy  # the parser builds policies

        return parse_policy(text)

    @staticmethod
    def coerce(value: Retry | str) -> Retry:
        """A policy as callers may give it: itself, a preset's name or a policy's text."""
        if isinstance(value, Retry):
            return value
        if isinstance(value, str):
            return Retry.parse(value)
        raise BadPolicy(
            f"A retry policy cannot be made of {shown(value)}.",
            'Give a Retry, the name of a preset such as "standard", or a text such as "fixed(5s)".',
        )

    @property
    def text(self) -> str:
        """The policy as text that `parse` reads back; canonical, so that equal policies have equal texts."""
        from perdure.model.policy.text import policy_text  # the printer knows the policy's type

        return policy_text(self)

    @property
    def max_retries(self) -> int:
        """The limit's other spelling."""
        return self.max_attempts - 1

    @property
    def bounds_jobs(self) -> bool:
        """Whether the limit holds for every job under this policy, and not only for those that ask for none.

        A policy without retries means one run, whatever a job asks for.
        """
        return self.caps_jobs or self.max_attempts == 1

    def ceiling(self, n: int) -> timedelta:
        """The delay after the n-th failure before jitter; zero for n < 1."""
        return wait_after(self.curve, n, LONGEST_DELAY if self.cap is None else self.cap)

    def bounds(self, n: int, previous: timedelta | None = None) -> tuple[timedelta, timedelta]:
        """The shortest and the longest delay that may be chosen after the n-th failure."""
        delay = self.ceiling(n)
        if self.jitter == "decorrelated":
            least, greatest = spread(self.jitter, delay, self.ceiling(1), previous)
        else:
            least, greatest = spread(self.jitter, delay, delay, previous)
        # Decorrelated delays grow from one another, so only a cap keeps them in bounds.
        is_capped = not self.jitter_over_cap or self.jitter == "decorrelated"
        highest = self.cap if is_capped and self.cap is not None else LONGEST_DELAY
        return min(least, highest), min(greatest, highest)

    def delay(self, n: int, random: random_module.Random, previous: timedelta | None = None) -> timedelta:
        """The delay after the n-th failure, jittered; decorrelated jitter goes by the `previous` one.

        Where a policy's Python function fails, `ceiling` tells; here the default curve stands in for it: no
        fault in a policy may keep a job from going on.
        """
        try:
            least, greatest = self.bounds(n, previous)
        except BadPolicy:
            least, greatest = _STAND_IN.bounds(n)
        return pick(least, greatest, random)

    def on(self, *errors_then_what: ErrorName | tuple[ErrorName, ...] | Retry | Duration) -> Retry:
        """After these errors wait as another policy or a plain delay says: `.on(TimeoutError, "30s")`.

        Another policy's curve, cap and jitter decide the delay. Its max_attempts bounds the job together with
        this one's, the lower of the two holds, so give it the limit that you mean. Its `within` and
        `max_recoveries` do not matter, and it has no rules of its own.
        """
        if len(errors_then_what) < 2:
            raise BadPolicy("on() needs errors and then what to do.", 'Such as .on(TimeoutError, "30s").')
        *errors, what = errors_then_what
        rule = read_rule(what)
        return self._with_rules((name, rule) for name in error_names(errors))

    def never(self, *errors: ErrorName | tuple[ErrorName, ...]) -> Retry:
        """Never retry after these errors: the job is dead at once, reason `unrecoverable`."""
        if not errors:
            raise BadPolicy("never() needs one or more errors.", "Such as .never(ValueError).")
        return self._with_rules((name, Never()) for name in error_names(errors))

    def rule_for(self, lineage: Iterable[str]) -> Rule | None:
        """The rule of the most specific class: the first name of the lineage that has one."""
        if not self.rules:
            return None
        rules = dict(self.rules)
        return next((rules[name] for name in lineage if name in rules), None)

    def with_limit(self, max_attempts: Limit) -> Retry:
        """The same policy with another limit."""
        return self.replace(max_attempts=max_attempts)

    def replace(
        self,
        *,
        cap: Duration | UnsetType | None = UNSET,
        jitter: Jitter | UnsetType = UNSET,
        max_attempts: Limit | None = None,
        max_retries: Limit | None = None,
        within: Duration | UnsetType | None = UNSET,
        max_recoveries: int | UnsetType | None = UNSET,
        jitter_over_cap: bool | UnsetType = UNSET,
        caps_jobs: bool | UnsetType = UNSET,
    ) -> Retry:
        """The same policy with what is given here changed; its curve and its rules stay."""
        limit = read_limit(max_attempts, max_retries)
        changed = _build(
            self.curve,
            self.jitter if jitter is UNSET else jitter,
            self.cap if cap is UNSET else cap,
            self.max_attempts if limit is None else limit,
            None,
            self.within if within is UNSET else within,
            self.max_recoveries if max_recoveries is UNSET else max_recoveries,
            self.jitter_over_cap if jitter_over_cap is UNSET else jitter_over_cap,
            self.caps_jobs if caps_jobs is UNSET else caps_jobs,
        )
        return msgspec.structs.replace(changed, rules=self.rules)

    def __str__(self) -> str:
        from perdure.model.policy.text import describe_policy  # the printer knows the policy's type

        return describe_policy(self)

    def __repr__(self) -> str:
        return f"<Retry {self}>"

    def _with_rules(self, added: Iterable[tuple[str, Rule]]) -> Retry:
        rules = dict(self.rules) | dict(added)
        return msgspec.structs.replace(self, rules=tuple((name, rules[name]) for name in sorted(rules)))


def _build(
    curve: Curve,
    jitter: Jitter,
    cap: Duration | None,
    max_attempts: Limit | None,
    max_retries: Limit | None,
    within: Duration | None,
    max_recoveries: int | None,
    jitter_over_cap: bool,
    caps_jobs: bool,
) -> Retry:
    limit = read_limit(max_attempts, max_retries)
    read = read_jitter(jitter)
    return Retry(
        curve=curve,
        # Nothing spreads a delay of zero, so two policies that never wait must not differ by their jitter.
        jitter="none" if isinstance(curve, Fixed) and not curve.every else read,
        cap=None if cap is None else refuse_zero("cap", read_delay("cap", cap)),
        max_attempts=usual_limit(curve) if limit is None else limit,
        within=None if within is None else refuse_zero("within", read_duration("within", within)),
        max_recoveries=read_recoveries(max_recoveries),
        jitter_over_cap=read_truth("jitter_over_cap", jitter_over_cap),
        caps_jobs=read_truth("caps_jobs", caps_jobs),
    )


_STAND_IN = Retry.exponential("500ms", cap="30s")
