"""The one decision: every row of the table in ARCHITECTURE.md, and that it has an answer for everything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.decide import decide, spent
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId
from perdure.model.outcome import (
    AskedToWait,
    Cancelled,
    Ending,
    GaveUp,
    Raised,
    Returned,
    ShutDown,
    Snoozed,
    Spent,
    TaskUnknown,
    TimedOut,
    Undecodable,
    Vanished,
)
from perdure.model.policy.resolve import AppPolicy, Policy, QueuePolicy, TaskPolicy, resolve
from perdure.model.policy.retry import Retry
from perdure.model.state import ENDED, is_allowed

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
BOOM = Failure(type="ValueError", message="boom", lineage=("ValueError", "Exception", "BaseException"))
FIVE_SECONDS = Retry.fixed("5s", jitter="none")


def a_job(**changes: object) -> Job:
    job = Job(
        id=JobId("01900000-0000-7000-8000-000000000000"),
        task="send",
        queue="mail",
        state="running",
        lane="fresh",
        args=b"{}",
        priority=0,
        run_at=NOW,
        attempt=1,
        failures=0,
        recoveries=0,
        delivery="at_least_once",
        created_at=NOW,
    )
    return msgspec.structs.replace(job, **changes)


def a_policy(retry: Retry = FIVE_SECONDS, job: Job | None = None, **app: object) -> Policy:
    return resolve(job or a_job(), TaskPolicy(retry=retry), QueuePolicy(), AppPolicy(retry=retry, **app))


def outcome_of(ending: Ending, job: Job | None = None, policy: Policy | None = None):
    return decide(job or a_job(), ending, policy or a_policy(), NOW, Random(1))


def test_returned_succeeds_and_keeps_the_result():
    outcome = outcome_of(Returned(result=b"42"), a_job(failures=2))
    assert (outcome.state, outcome.attempt, outcome.result) == ("succeeded", "succeeded", b"42")
    assert outcome.failures == 2


def test_raised_counts_and_retries_after_the_policys_delay():
    outcome = outcome_of(Raised(error=BOOM))
    assert (outcome.state, outcome.reason, outcome.failures) == ("waiting", "failed", 1)
    assert outcome.delay == timedelta(seconds=5)
    assert outcome.lane == "retry"
    assert outcome.error == BOOM


def test_a_retry_without_delay_is_ready_at_once():
    outcome = outcome_of(Raised(error=BOOM), policy=a_policy(Retry.preset("immediate")))
    assert (outcome.state, outcome.delay) == ("ready", timedelta(0))


def test_the_last_allowed_failure_ends_the_job_dead_with_its_error_kept():
    outcome = outcome_of(Raised(error=BOOM), a_job(failures=3))
    assert (outcome.state, outcome.reason, outcome.failures) == ("dead", "exhausted", 4)
    assert outcome.error == BOOM
    assert outcome.delay is None


def test_give_up_ends_the_job_dead_at_once():
    outcome = outcome_of(GaveUp(error=BOOM))
    assert (outcome.state, outcome.reason) == ("dead", "unrecoverable")


def test_an_error_that_the_policy_names_never_ends_the_job_dead_at_once():
    outcome = outcome_of(Raised(error=BOOM), policy=a_policy(FIVE_SECONDS.never(ValueError)))
    assert (outcome.state, outcome.reason) == ("dead", "unrecoverable")


def test_the_most_specific_rule_wins():
    retry = FIVE_SECONDS.never(Exception).on(ValueError, "1m")
    outcome = outcome_of(Raised(error=BOOM), policy=a_policy(retry))
    assert (outcome.state, outcome.delay) == ("waiting", timedelta(minutes=1))


def test_a_rule_with_a_policy_of_its_own_bounds_the_attempts_too():
    retry = FIVE_SECONDS.on(ValueError, Retry.fixed("1s", jitter="none", max_attempts=2))
    first = outcome_of(Raised(error=BOOM), policy=a_policy(retry))
    second = outcome_of(Raised(error=BOOM), a_job(failures=1), a_policy(retry))
    assert (first.state, first.delay) == ("waiting", timedelta(seconds=1))
    assert (second.state, second.reason) == ("dead", "exhausted")


def test_a_rule_with_a_policy_for_its_delays_alone_leaves_the_limit_as_it_is():
    retry = Retry.exponential("1s", max_attempts=12).on(ValueError, Retry.fixed("1m", jitter="none"))
    outcome = outcome_of(Raised(error=BOOM), a_job(failures=10), a_policy(retry))
    assert (outcome.state, outcome.delay) == ("waiting", timedelta(minutes=1))


def test_snooze_counts_nothing():
    outcome = outcome_of(Snoozed(delay=timedelta(minutes=2)), a_job(failures=3))
    assert (outcome.state, outcome.failures, outcome.delay) == ("waiting", 3, timedelta(minutes=2))
    assert outcome.attempt == "snoozed"


@pytest.mark.parametrize(("asked", "expected"), [(1, 5), (60, 60), (10**6, 86_400)])
def test_retry_after_waits_the_longer_of_both_up_to_the_longest_allowed(asked: int, expected: int):
    outcome = outcome_of(AskedToWait(delay=timedelta(seconds=asked), error=BOOM))
    assert (outcome.failures, outcome.delay) == (1, timedelta(seconds=expected))


def test_cancelled_ends_cancelled():
    assert outcome_of(Cancelled()).state == "cancelled"


def test_a_timeout_says_what_the_handler_was_doing():
    error = outcome_of(TimedOut(timeout=timedelta(seconds=30), doing="while it waited for the bank")).error
    assert error is not None
    assert error.message == "the attempt ran past its timeout of 30 s while it waited for the bank"


def test_timeout_counts_with_its_own_reason_and_is_an_error_that_rules_can_name():
    outcome = outcome_of(TimedOut(timeout=timedelta(seconds=30)))
    assert (outcome.state, outcome.reason, outcome.failures) == ("waiting", "timeout", 1)
    assert outcome_of(TimedOut(timeout=timedelta(seconds=30)), a_job(failures=3)).reason == "timeout"
    never = a_policy(FIVE_SECONDS.never(TimeoutError))
    assert outcome_of(TimedOut(timeout=timedelta(seconds=30)), policy=never).reason == "unrecoverable"


@pytest.mark.parametrize(("has_started", "lane"), [(False, "fresh"), (True, "retry")])
def test_a_shut_down_worker_gives_the_job_back_with_nothing_counted(has_started: bool, lane: str):
    outcome = outcome_of(ShutDown(has_started=has_started))
    assert (outcome.state, outcome.failures, outcome.delay, outcome.lane) == ("ready", 0, timedelta(0), lane)


def test_a_vanished_worker_counts_as_a_failure_by_default():
    outcome = outcome_of(Vanished(detail="gone"))
    assert (outcome.state, outcome.reason, outcome.failures, outcome.recoveries) == ("waiting", "lost", 1, 1)
    assert outcome_of(Vanished(detail="gone"), a_job(failures=3)).state == "dead"


def test_max_recoveries_grants_free_ones_and_no_more():
    policy = a_policy(Retry.fixed("5s", max_recoveries=1))
    free = outcome_of(Vanished(detail="gone"), policy=policy)
    counted = outcome_of(Vanished(detail="gone"), a_job(recoveries=1), policy)
    assert (free.state, free.failures, free.recoveries) == ("ready", 0, 1)
    assert (counted.failures, counted.recoveries) == (1, 2)


def test_unlimited_recoveries_are_another_value_than_none_at_all():
    policy = a_policy(Retry.fixed("5s", max_recoveries=None))
    outcome = outcome_of(Vanished(detail="gone"), a_job(recoveries=999), policy)
    assert outcome.failures == 0


# Proves [INV-5].
@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (Raised(error=BOOM), "failed"),
        (AskedToWait(delay=timedelta(seconds=1), error=BOOM), "failed"),
        (Snoozed(delay=timedelta(seconds=1)), "failed"),
        (TimedOut(timeout=timedelta(seconds=1)), "timeout"),
        (Vanished(detail="gone"), "outcome unknown"),
        (ShutDown(has_started=True), "outcome unknown"),
    ],
)
def test_at_most_once_never_starts_again(ending: Ending, reason: str):
    for retry in (FIVE_SECONDS, Retry.fixed("5s", max_recoveries=None)):
        outcome = outcome_of(ending, a_job(delivery="at_most_once"), a_policy(retry))
        assert (outcome.state, outcome.reason) == ("dead", reason)


def test_at_most_once_that_was_never_entered_may_be_given_back():
    assert outcome_of(ShutDown(has_started=False), a_job(delivery="at_most_once")).state == "ready"


def test_an_unknown_task_is_parked_a_little_longer_each_time():
    first = outcome_of(TaskUnknown())
    assert (first.state, first.reason, first.failures, first.lane) == ("waiting", "parked", 0, "fresh")
    second = outcome_of(TaskUnknown(), a_job(reason="parked", delay=first.delay, parked_at=NOW))
    assert second.delay == 2 * first.delay


def test_an_unknown_task_ends_dead_after_its_time():
    job = a_job(reason="parked", delay=timedelta(minutes=5), parked_at=NOW - timedelta(days=7))
    outcome = outcome_of(TaskUnknown(), job)
    assert (outcome.state, outcome.reason) == ("dead", "unknown task")


def test_arguments_that_do_not_decode_end_the_job_dead():
    outcome = outcome_of(Undecodable(detail="not JSON"))
    assert (outcome.state, outcome.reason) == ("dead", "bad payload")
    assert outcome.error is not None
    assert "not JSON" in outcome.error.message


def test_within_ends_a_job_whose_retry_would_come_too_late():
    policy = a_policy(Retry.fixed("5s", jitter="none", within="1m"))
    in_time = outcome_of(Raised(error=BOOM), a_job(created_at=NOW - timedelta(seconds=55)), policy)
    too_late = outcome_of(Raised(error=BOOM), a_job(created_at=NOW - timedelta(seconds=56)), policy)
    assert in_time.state == "waiting"
    assert (too_late.state, too_late.reason) == ("dead", "expired")


def test_the_operators_cap_is_above_everyone():
    job = a_job(max_attempts=100)
    policy = a_policy(Retry.preset("standard"), job, max_attempts_cap=10)
    assert (policy.limit, policy.limit_origin) == (10, "operator's cap")
    assert a_policy(Retry.preset("standard"), job).limit == 100


# Proves [INV-6].
def test_a_limit_lowered_since_ends_the_job_before_it_runs_again():
    assert spent(a_job(failures=4), a_policy(), NOW) == Spent(reason="exhausted")
    assert spent(a_job(failures=3), a_policy(), NOW) is None
    assert outcome_of(Spent(reason="exhausted"), a_job(failures=4)).state == "dead"


def test_who_does_not_know_the_task_does_not_declare_it_exhausted():
    job = a_job(failures=10)
    stranger = resolve(job, None, QueuePolicy(), AppPolicy(retry=FIVE_SECONDS))
    assert decide(job, Vanished(detail="gone"), stranger, NOW, Random(1)).state == "waiting"


def test_after_its_first_failure_a_job_moves_to_the_retry_queue():
    queue = QueuePolicy(retry_queue="mail-retries")
    policy = resolve(a_job(), TaskPolicy(), queue, AppPolicy(retry=FIVE_SECONDS))
    assert outcome_of(Raised(error=BOOM), policy=policy).queue == "mail-retries"
    assert outcome_of(Raised(error=BOOM), a_job(queue="mail-retries", origin="mail"), policy).queue is None
    assert outcome_of(Returned(), policy=policy).queue is None


def test_precedence_is_job_over_task_over_queue_over_app():
    one, two, three, four = (Retry.fixed(f"{n}s") for n in (1, 2, 3, 4))
    app, queue, task = AppPolicy(retry=one), QueuePolicy(retry=two), TaskPolicy(retry=three)
    assert resolve(a_job(), None, QueuePolicy(), app).retry == one
    assert resolve(a_job(), TaskPolicy(), queue, app).retry == two
    assert resolve(a_job(), task, queue, app).retry == three
    assert resolve(a_job(retry=four.text), task, queue, app).retry == four


def test_a_policy_function_that_raises_does_not_cost_the_job():
    def broken(n: int) -> float:
        raise ZeroDivisionError

    outcome = outcome_of(Raised(error=BOOM), policy=a_policy(Retry.function(broken)))
    assert outcome.state == "waiting"
    assert outcome.delay is not None
    assert outcome.delay <= timedelta(seconds=1)


delays = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400))
failures = st.builds(
    lambda name, message: Failure(type=name, message=message, lineage=(name, "Exception")),
    st.sampled_from(["ValueError", "KeyError", "app.Rate"]),
    st.text(max_size=20),
)
endings: st.SearchStrategy[Ending] = st.one_of(
    st.builds(Returned, result=st.none() | st.binary(max_size=5)),
    st.builds(Raised, error=failures),
    st.builds(GaveUp, error=failures),
    st.builds(AskedToWait, delay=delays, error=failures),
    st.builds(Snoozed, delay=delays),
    st.builds(Cancelled),
    st.builds(TimedOut, timeout=delays),
    st.builds(ShutDown, has_started=st.booleans()),
    st.builds(Vanished, detail=st.text(max_size=10)),
    st.builds(Spent, reason=st.sampled_from(["exhausted", "expired"])),
    st.builds(TaskUnknown),
    st.builds(Undecodable, detail=st.text(max_size=10)),
)
policies = st.builds(
    lambda retry, limit, within, recoveries, cap: (
        retry.replace(max_attempts=limit, within=within, max_recoveries=recoveries),
        cap,
    ),
    st.sampled_from(
        [FIVE_SECONDS, Retry.preset("standard"), Retry.preset("quadrupling"), FIVE_SECONDS.never("ValueError")]
    ),
    st.integers(1, 6),
    st.none() | delays.filter(bool),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(1, 5),
)


def test_the_strategy_knows_every_ending():
    assert len(get_args(Ending)) == 12


@given(
    endings,
    policies,
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(["at_least_once", "at_most_once"]),
    st.sampled_from([None, "failed", "lost", "parked"]),
    st.none() | delays,
    st.booleans(),
)
def test_decide_has_an_allowed_answer_for_everything(
    ending, policy, failures, recoveries, delivery, reason, delay, known
):
    retry, cap = policy
    job = a_job(failures=failures, recoveries=recoveries, delivery=delivery, reason=reason, delay=delay)
    task = TaskPolicy(retry=retry) if known else None
    resolved = resolve(job, task, QueuePolicy(), AppPolicy(retry=retry, max_attempts_cap=cap))
    outcome = decide(job, ending, resolved, NOW, Random(7))
    assert is_allowed(outcome.verb, "running", outcome.state)
    goes_on = outcome.state not in ENDED
    assert (outcome.delay is not None) == goes_on
    if outcome.delay is not None:
        assert outcome.delay >= timedelta(0)
        assert (outcome.state == "ready") == (outcome.delay == timedelta(0))
    assert outcome.failures >= job.failures
    if delivery == "at_most_once" and goes_on:
        assert isinstance(ending, ShutDown | TaskUnknown)
        assert not (isinstance(ending, ShutDown) and ending.has_started)


# Proves [INV-6].
@given(policies, st.lists(endings.filter(lambda e: not isinstance(e, Spent)), max_size=60), st.randoms())
def test_counted_runs_never_exceed_the_limit(policy, life, random):
    """Live through any sequence of endings: the failures counted stay within the effective limit."""
    retry, cap = policy
    job = a_job()
    resolved = resolve(job, TaskPolicy(retry=retry), QueuePolicy(), AppPolicy(retry=retry, max_attempts_cap=cap))
    counted = 0
    for ending in life:
        assert spent(job, resolved, NOW) is None
        outcome = decide(job, ending, resolved, NOW, Random(random.random()))
        counted += outcome.failures - job.failures
        if outcome.state in ENDED:
            break
        job = msgspec.structs.replace(
            job, failures=outcome.failures, recoveries=outcome.recoveries, reason=outcome.reason, lane=outcome.lane
        )
    limit = min(retry.max_attempts, cap or retry.max_attempts)
    assert counted <= limit


# Proves [INV-5].
def test_an_at_most_once_job_that_was_never_entered_goes_back_in_line() -> None:
    job = a_job(delivery="at_most_once")
    outcome = outcome_of(Vanished(detail="gone", has_started=False), job)
    assert (outcome.state, outcome.attempt, outcome.failures, outcome.recoveries) == ("ready", "released", 0, 0)
    assert outcome.lane == job.lane


# Proves [INV-25].
def test_a_bystander_of_a_vanished_worker_is_counted_once_and_again_only_after_three_more_losses() -> None:
    counted = []
    job = a_job(failures=0, recoveries=0)
    for _ in range(6):
        outcome = outcome_of(Vanished(detail="gone", is_bystander=True), job)
        counted.append(outcome.failures - job.failures)
        job = a_job(failures=outcome.failures, recoveries=outcome.recoveries)
    assert counted == [1, 0, 0, 0, 1, 1]


def test_a_job_that_raised_while_its_worker_lost_the_lease_keeps_its_error_and_is_a_suspect() -> None:
    error = Failure(type="ValueError", message="no")
    outcome = outcome_of(Raised(error=error, is_suspect=True), a_job(failures=0, recoveries=0))
    assert (outcome.attempt, outcome.failures, outcome.recoveries, outcome.error) == ("failed", 1, 1, error)


def test_a_job_whose_own_child_died_is_counted_each_time() -> None:
    outcome = outcome_of(Vanished(detail="gone"), a_job(failures=1, recoveries=1))
    assert (outcome.failures, outcome.recoveries, outcome.reason) == (2, 2, "lost")
