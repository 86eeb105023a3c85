"""The one decision: what follows an attempt. Worker, reaper and command line all ask here; nobody else decides.

`decide` is pure and total: it has an answer for every job, every ending and every policy.
"""

from __future__ import annotations

import functools
from datetime import datetime, timedelta
from random import Random
from typing import Literal, assert_never

import msgspec

from perdure.model.failure import Failure
from perdure.model.job import AttemptOutcome, Job
from perdure.model.outcome import (
    AskedToWait,
    Cancelled,
    Ending,
    GaveUp,
    Outcome,
    Raised,
    Reason,
    Returned,
    ShutDown,
    Snoozed,
    Spent,
    TaskUnknown,
    TimedOut,
    Undecodable,
    Vanished,
)
from perdure.model.policy.resolve import Policy
from perdure.model.policy.retry import Never, Retry, UseDelay, UsePolicy
from perdure.model.state import Lane

_AT_ONCE = timedelta(0)
_FIRST_PARKING = timedelta(seconds=10)
"""How long a job is first parked. A worker that knows its task claims it sooner (runtime/periodic/unparker.py). The job
is looked at again for its time limit only, and thousands of parked jobs must not keep the other workers busy."""
_LONGEST_PARKING = timedelta(minutes=5)
_LONGEST_DELAY = timedelta(days=365)
MOST_BYSTANDING = 3
"""How many losses of its worker are not counted against a job that runs in a child process; later ones are."""


def decide(job: Job, ending: Ending, policy: Policy, now: datetime, random: Random) -> Outcome:
    """What follows the newest attempt of `job`, which ended so."""
    outcome = _decide(job, ending, policy, now, random)
    if outcome.state == "dead" and policy.sink is not None:
        return msgspec.structs.replace(outcome, sink=policy.sink.name)
    return outcome


def spent(job: Job, policy: Policy, now: datetime) -> Spent | None:
    """Why a job that was just fetched may not run again: a limit lowered since, or a life that is over."""
    # [INV-6] Looked at again before each start, as the limit may have been unknown or another.
    if job.failures >= policy.limit:
        return Spent(reason="exhausted")
    within = policy.retry.within
    if within is not None and now > job.life_began_at + within:
        return Spent(reason="expired")
    return None


def _decide(job: Job, ending: Ending, policy: Policy, now: datetime, random: Random) -> Outcome:
    match ending:
        case Returned(result=None, note=None):
            return _succeeded(job.failures, job.recoveries, job.lane)
        case Returned(result=result, note=note):
            plain = _succeeded(job.failures, job.recoveries, job.lane)
            return msgspec.structs.replace(plain, result=result, note=note)
        case Raised(error=error, is_suspect=False):
            return _failed(job, policy, now, random, error, "failed")
        case Raised(error=error):
            outcome = _failed(job, policy, now, random, error, "failed")
            return msgspec.structs.replace(outcome, recoveries=job.recoveries + 1)
        case AskedToWait(error=error, delay=asked):
            return _failed(job, policy, now, random, error, "failed", asked=min(asked, policy.max_retry_after))
        case TimedOut(timeout=timeout, doing=doing):
            return _failed(job, policy, now, random, _timeout(timeout, doing), "timeout")
        case GaveUp(error=error):
            return _dead(job, "failed", "unrecoverable", job.failures + 1, error)
        case Snoozed(delay=delay):
            return _snoozed(job, delay)
        case Cancelled(error=error):
            return Outcome(
                verb="cancel",
                state="cancelled",
                attempt="cancelled",
                reason="cancelled",
                failures=job.failures,
                recoveries=job.recoveries,
                lane=job.lane,
                error=error,
            )
        case ShutDown(has_started=has_started):
            return _shut_down(job, has_started)
        case Vanished(has_started=False):
            return _given_back(job, "release", "released", _AT_ONCE, lane_changes=False)
        case Vanished(detail=detail, is_bystander=is_bystander):
            return _vanished(job, policy, now, random, detail, is_bystander)
        case Spent(reason=reason):
            return _dead(job, "released", reason, job.failures, job.error)
        case TaskUnknown():
            return _parked(job, policy, now)
        case Undecodable(detail=detail):
            error = Failure(type="perdure.errors.BadPayload", message=detail)
            return _dead(job, "failed", "bad payload", job.failures, error)
        case _:
            assert_never(ending)


@functools.lru_cache(1000)
def _succeeded(failures: int, recoveries: int, lane: Lane) -> Outcome:
    """Success without a result; most are the same, and so they are one value."""
    return Outcome(
        verb="succeed", state="succeeded", attempt="succeeded", failures=failures, recoveries=recoveries, lane=lane
    )


def _failed(
    job: Job,
    policy: Policy,
    now: datetime,
    random: Random,
    error: Failure,
    how: AttemptOutcome,
    *,
    asked: timedelta = _AT_ONCE,
) -> Outcome:
    """A failure that counts: a retry after the policy's delay while the limit allows it, else dead."""
    failures = job.failures + 1
    reason: Reason = "lost" if how == "lost" else "timeout" if how == "timeout" else "failed"
    # [INV-5] An at-most-once job that may have started never starts again.
    if job.delivery == "at_most_once":
        return _dead(job, how, "outcome unknown" if how == "lost" else reason, failures, error)
    limit = policy.limit
    lowered: int | None = None
    curve = policy.retry
    fixed: timedelta | None = None
    match rule := policy.retry.rule_for(error.lineage):
        case Never():
            return _dead(job, how, "unrecoverable", failures, error)
        case UsePolicy(policy=nested):
            curve = nested
            if rule.limit is not None and rule.limit < limit:
                limit = lowered = rule.limit
        case UseDelay(delay=fixed):
            pass
        case None:
            pass
    # [INV-6] No job fails more often than its limit allows.
    # A worker that does not know the task has no right to call its job exhausted; one that knows it will.
    if failures >= limit and (policy.is_task_known or job.max_attempts is not None):
        return _dead(job, how, "exhausted" if how == "failed" else reason, failures, error, lowered)
    delay = max(fixed if fixed is not None else _delay(curve, failures, random, job), asked)
    if policy.retry.within is not None and now + delay > job.life_began_at + policy.retry.within:
        return _dead(job, how, "expired", failures, error, lowered)
    return Outcome(
        verb="fail",
        state="waiting" if delay else "ready",
        attempt=how,
        reason=reason,
        failures=failures,
        recoveries=job.recoveries + (how == "lost"),
        lane="retry",
        delay=delay,
        queue=_move(job, policy),
        error=error,
        limit=lowered,
    )


def _delay(curve: Retry, failures: int, random: Random, job: Job) -> timedelta:
    previous = job.delay if job.reason in ("failed", "timeout", "lost") else None
    return curve.delay(failures, random, previous)


def _move(job: Job, policy: Policy) -> str | None:
    """The retry queue, for a job that is not there yet."""
    if policy.retry_queue is None or policy.retry_queue == job.queue:
        return None
    return policy.retry_queue


def _dead(
    job: Job,
    how: AttemptOutcome,
    reason: Reason,
    failures: int,
    error: Failure | None,
    limit: int | None = None,
) -> Outcome:
    return Outcome(
        verb="bury",
        state="dead",
        attempt=how,
        reason=reason,
        failures=failures,
        recoveries=job.recoveries + (how == "lost"),
        lane="retry",
        error=error,
        limit=limit,
    )


def _snoozed(job: Job, delay: timedelta) -> Outcome:
    if job.delivery == "at_most_once":
        message = "the handler raised Snooze, but a job that is delivered at most once may not start again"
        return _dead(job, "failed", "failed", job.failures + 1, Failure(type="perdure.errors.Snooze", message=message))
    delay = min(delay, _LONGEST_DELAY)
    return _given_back(job, "snooze", "snoozed", delay, lane_changes=True)


def _shut_down(job: Job, has_started: bool) -> Outcome:
    if has_started and job.delivery == "at_most_once":
        message = "its worker was stopped while the attempt ran"
        error = Failure(type="perdure.Interrupted", message=message)
        return _dead(job, "released", "outcome unknown", job.failures, error)
    return _given_back(job, "release", "released", _AT_ONCE, lane_changes=has_started)


def _given_back(
    job: Job,
    verb: Literal["snooze", "release"],
    how: Literal["snoozed", "released"],
    delay: timedelta,
    *,
    lane_changes: bool,
) -> Outcome:
    """Back in line with nothing counted; only a job that has run belongs to the retry lane."""
    return Outcome(
        verb=verb,
        state="waiting" if delay else "ready",
        attempt=how,
        reason=how,
        failures=job.failures,
        recoveries=job.recoveries,
        lane="retry" if lane_changes else job.lane,
        delay=delay,
    )


def _vanished(job: Job, policy: Policy, now: datetime, random: Random, detail: str, is_bystander: bool) -> Outcome:
    error = Failure(type="perdure.WorkerVanished", message=detail, lineage=("perdure.WorkerVanished",))
    free = policy.retry.max_recoveries
    is_free = free is None or job.recoveries < free
    # [INV-25] One loss is counted. From then on the job runs in a child process, and when a worker vanishes around it,
    # another job is to blame. The bound is for jobs that reach their worker from inside the child.
    is_free = is_free or (is_bystander and 0 < job.recoveries <= MOST_BYSTANDING)
    if is_free and job.delivery == "at_least_once":
        return Outcome(
            verb="fail",
            state="ready",
            attempt="lost",
            reason="lost",
            failures=job.failures,
            recoveries=job.recoveries + 1,
            lane="retry",
            delay=_AT_ONCE,
            queue=_move(job, policy),
            error=error,
        )
    return _failed(job, policy, now, random, error, "lost")


def _parked(job: Job, policy: Policy, now: datetime) -> Outcome:
    """Nobody here knows the task: wait for a worker that does, a little longer each time, but not for ever."""
    message = f"no worker that serves the queue {job.queue!r} knows the task {job.task!r}"
    error = Failure(type="perdure.errors.UnknownTask", message=message)
    if now - (job.parked_at or now) >= policy.unknown_task_ttl:
        return _dead(job, "parked", "unknown task", job.failures, error)
    was_parked = job.reason == "parked" and job.delay is not None
    delay = min(2 * job.delay, _LONGEST_PARKING) if was_parked and job.delay else _FIRST_PARKING
    return Outcome(
        verb="park",
        state="waiting",
        attempt="parked",
        reason="parked",
        failures=job.failures,
        recoveries=job.recoveries,
        lane=job.lane,
        delay=min(delay, max(policy.unknown_task_ttl, timedelta(milliseconds=1))),
        error=error,
    )


def _timeout(timeout: timedelta, doing: str) -> Failure:
    return Failure(
        type="TimeoutError",
        message=f"the attempt ran past its timeout of {timeout.total_seconds():g} s {doing}".rstrip(),
        lineage=("TimeoutError", "OSError", "Exception", "BaseException"),
    )
