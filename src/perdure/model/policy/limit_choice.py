"""Which limit holds for a job: every place that names one, which of them wins, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from perdure.model.policy.retry import Retry
from perdure.model.policy.rule import UsePolicy

Origin = Literal["job", "task", "queue", "app", "operator's cap"]


class Source(msgspec.Struct, frozen=True):
    """A retry policy and where it comes from."""

    retry: Retry
    origin: Origin
    place: str | None = None
    """The file or the environment variable that sets it; None where the code does, or nobody."""

    @property
    def label(self) -> str:
        """The origin for people to read."""
        return self.origin if self.place is None else f"{self.origin} ({self.place})"


class Candidate(msgspec.Struct, frozen=True):
    """One place that names a limit for a job."""

    name: str
    """What names it, such as `max_attempts of the job`."""
    max_attempts: int
    origin: Origin
    label: str
    """The origin for people to read."""
    asks: bool
    """Whether it is the limit where nothing nearer to the job names one."""
    bounds: bool
    """Whether it also lowers what something nearer to the job asks for."""
    note: str = ""
    """Why it neither asks nor bounds."""


class LimitChoice(msgspec.Struct, frozen=True):
    """What names limits for one job."""

    job: int | None
    """The job's own max_attempts."""
    task: int | None
    """Its task's."""
    policy: Source
    """The policy that holds."""
    beneath: Source
    """The policy that would hold if the job had none of its own; the very same as `policy` where it has none."""
    cap: int | None
    """The operator's."""
    is_task_known: bool

    def effective(self) -> tuple[int, Origin]:
        """The limit that holds and its origin: that of `effective_limit`, without the words of the candidates."""
        policy, beneath = self.policy, self.beneath
        has_own = policy is not beneath
        limit, origin = policy.retry.max_attempts, policy.origin
        if self.job is not None:
            limit, origin = self.job, "job"
        elif self.task is not None and not has_own:
            limit, origin = self.task, "task"
        if policy.retry.bounds_jobs and (has_own or self.is_task_known) and policy.retry.max_attempts < limit:
            limit, origin = policy.retry.max_attempts, policy.origin
        if has_own and beneath.retry.caps_jobs and self.is_task_known and beneath.retry.max_attempts < limit:
            limit, origin = beneath.retry.max_attempts, beneath.origin
        if self.cap is not None and self.cap < limit:
            return self.cap, "operator's cap"
        return limit, origin

    def candidates(self) -> list[Candidate]:
        """Every place that names a limit, the nearest to the job first."""
        found = []
        policy, beneath = self.policy, self.beneath
        has_own = policy is not beneath
        if self.job is not None:
            found.append(Candidate("max_attempts of the job", self.job, "job", "job", asks=True, bounds=False))
        if self.task is not None:
            # A job's own policy brings its own limit; it would be odd if the task's number overruled the nearer policy.
            note = _OWN if has_own else ""
            found.append(Candidate("max_attempts of the task", self.task, "task", "task", not has_own, False, note))
        # Without the task nobody knows whether another policy holds than the queue's or the app's.
        is_sure = self.is_task_known or has_own
        found.append(_policy(policy, asks=True, bounds=policy.retry.bounds_jobs and is_sure, note=""))
        if has_own:
            # A job's own policy takes the place of one without retries, but not of one that caps jobs.
            bounds = beneath.retry.caps_jobs and self.is_task_known
            found.append(_policy(beneath, asks=False, bounds=bounds, note=_OWN))
        if self.cap is not None:
            found.append(
                Candidate("max_attempts_cap", self.cap, "operator's cap", "operator's cap", False, bounds=True)
            )
        return found


def effective_limit(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that holds: the nearest that asks for a limit, unless another bounds it to less."""
    chosen = next(candidate for candidate in candidates if candidate.asks)
    for candidate in candidates:
        if candidate.bounds and candidate.max_attempts < chosen.max_attempts:
            chosen = candidate
    return chosen


class ExplainedLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A place that names a limit, whether it is the one that holds, and why."""

    name: str
    max_attempts: int
    origin: str
    is_effective: bool
    reason: str


def explain_limits(choice: LimitChoice) -> tuple[ExplainedLimit, ...]:
    """Every candidate with the reason why it holds, or why it does not; then what the policy's rules say."""
    candidates = choice.candidates()
    chosen = effective_limit(candidates)
    explained = tuple(
        ExplainedLimit(
            name=candidate.name,
            max_attempts=candidate.max_attempts,
            origin=candidate.label,
            is_effective=candidate is chosen,
            reason=_reason(candidate, chosen, candidates, is_task_known=choice.is_task_known),
        )
        for candidate in candidates
    )
    return explained + tuple(_rules(choice.policy, chosen))


def _rules(policy: Source, chosen: Candidate) -> Iterator[ExplainedLimit]:
    for error, rule in policy.retry.rules:
        if isinstance(rule, UsePolicy) and rule.limit is not None:
            is_lower = rule.limit < chosen.max_attempts
            yield ExplainedLimit(
                name=f"rule for {error}",
                max_attempts=rule.limit,
                origin=policy.label,
                is_effective=False,
                reason="holds after this error only" if is_lower else "the limit that holds is not higher",
            )


def _reason(candidate: Candidate, chosen: Candidate, candidates: Sequence[Candidate], *, is_task_known: bool) -> str:
    asked = next(each for each in candidates if each.asks)
    if candidate is chosen:
        return "the nearest to the job that names a limit" if candidate is asked else _bound(candidate)
    if candidate.bounds:
        return f"{_bound(candidate)}, and the limit that holds is not higher"
    if candidate.note:
        return candidate.note
    if candidate is asked:
        return f"more than the {chosen.name} allows"
    if candidate.origin in ("queue", "app") and not is_task_known and candidate.max_attempts < chosen.max_attempts:
        return "the task is not known here, and may have a policy of its own"
    return f"the {asked.name} is nearer to the job"


_OWN = "the job has a policy of its own, which brings its own limit"


def _policy(source: Source, *, asks: bool, bounds: bool, note: str) -> Candidate:
    name = _POLICY_NAMES[source.origin]
    return Candidate(name, source.retry.max_attempts, source.origin, source.label, asks, bounds, "" if bounds else note)


def _bound(candidate: Candidate) -> str:
    if candidate.origin == "operator's cap":
        return "no job may have more"
    if candidate.max_attempts == 1:
        return "a policy without retries means one run, whatever is asked for"
    return "the policy caps jobs"


_POLICY_NAMES: dict[Origin, str] = {
    "job": "policy of the job",
    "task": "policy of the task",
    "queue": "policy of the queue",
    "app": "policy of the app",
}
