"""Which limit holds for a job, from every place that can name one, and the reason that is given for each."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.strategies import plain_policies

from perdure.model.decide import decide, spent
from perdure.model.failure import Failure
from perdure.model.job import Job, JobId
from perdure.model.outcome import Outcome, Raised, Spent, Vanished
from perdure.model.policy.limit import HIGHEST_LIMIT
from perdure.model.policy.limit_choice import ExplainedLimit, effective_limit, explain_limits
from perdure.model.policy.resolve import AppPolicy, Policy, QueuePolicy, TaskPolicy, resolve
from perdure.model.policy.retry import Retry

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
BOOM = Failure(type="ValueError", message="boom", lineage=("ValueError", "Exception", "BaseException"))
PLAIN = Retry.fixed("5s", jitter="none", max_attempts=4)
CAPPING = Retry.fixed("5s", jitter="none", max_attempts=10, caps_jobs=True)
WITHOUT_RETRIES = [Retry.never_retry(), Retry.exponential("5s", max_attempts=1), Retry.fixed("5s", max_retries=0)]


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


def resolved(
    job: Job | None = None,
    *,
    task: TaskPolicy | None = TaskPolicy(),  # noqa: B008 - a frozen value
    queue: Retry | None = None,
    app: Retry = PLAIN,
    cap: int | None = None,
) -> Policy:
    return resolve(job or a_job(), task, QueuePolicy(retry=queue), AppPolicy(retry=app, max_attempts_cap=cap))


def explained(policy: Policy) -> list[ExplainedLimit]:
    return list(explain_limits(policy.choice))


def failed(job: Job, policy: Policy) -> Outcome:
    return decide(job, Raised(error=BOOM), policy, NOW, Random(1))


@pytest.mark.parametrize("policy", WITHOUT_RETRIES, ids=str)
@pytest.mark.parametrize("where", ["job", "task", "queue", "app"])
def test_a_policy_without_retries_means_one_run_whatever_the_job_asks_for(policy: Retry, where: str) -> None:
    job = a_job(max_attempts=5, retry=policy.text if where == "job" else None)
    found = resolved(
        job,
        task=TaskPolicy(retry=policy if where == "task" else None, max_attempts=7),
        queue=policy if where == "queue" else None,
        app=policy if where == "app" else PLAIN,
    )
    assert (found.limit, found.limit_origin) == (1, where)
    outcome = failed(job, found)
    assert (outcome.state, outcome.reason, outcome.failures) == ("dead", "exhausted", 1)


@pytest.mark.parametrize("policy", WITHOUT_RETRIES, ids=str)
def test_a_task_s_limit_does_not_change_a_policy_without_retries(policy: Retry) -> None:
    assert resolved(task=TaskPolicy(max_attempts=5), app=policy).limit == 1
    assert resolved(task=TaskPolicy(max_attempts=5, retry=policy)).limit == 1


def test_unlimited_does_not_change_a_policy_without_retries() -> None:
    assert resolved(a_job(max_attempts=HIGHEST_LIMIT), app=Retry.never_retry()).limit == 1


def test_a_nearer_policy_with_retries_takes_the_place_of_one_without() -> None:
    one_shot = Retry.never_retry()
    assert resolved(a_job(retry=PLAIN.text), app=one_shot).limit == 4
    assert resolved(task=TaskPolicy(retry=PLAIN), app=one_shot).limit == 4
    assert resolved(queue=PLAIN, app=one_shot).limit == 4


@pytest.mark.parametrize("policy", WITHOUT_RETRIES, ids=str)
def test_a_rule_whose_policy_has_no_retries_ends_the_job_at_that_error(policy: Retry) -> None:
    outer = PLAIN.on(ValueError, policy)
    for failures in (0, 2):
        job = a_job(max_attempts=9, failures=failures)
        outcome = failed(job, resolved(job, app=outer))
        assert (outcome.state, outcome.reason, outcome.limit) == ("dead", "exhausted", 1)


def test_a_rule_s_policy_that_caps_jobs_bounds_even_at_the_usual_limit() -> None:
    job = a_job(max_attempts=20, failures=3)
    usual = Retry.fixed("1s", jitter="none")
    assert failed(job, resolved(job, app=PLAIN.on(ValueError, usual))).state == "waiting"
    assert failed(job, resolved(job, app=PLAIN.on(ValueError, usual.replace(caps_jobs=True)))).state == "dead"


@pytest.mark.parametrize(("asked", "limit"), [(20, 10), (11, 10), (10, 10), (5, 5), (1, 1), (HIGHEST_LIMIT, 10)])
@pytest.mark.parametrize("where", ["task", "queue", "app"])
def test_a_policy_that_caps_jobs_takes_the_lower_of_both(asked: int, limit: int, where: str) -> None:
    def found(job: Job, own: int | None = None) -> Policy:
        task = TaskPolicy(retry=CAPPING if where == "task" else None, max_attempts=own)
        return resolved(
            job, task=task, queue=CAPPING if where == "queue" else None, app=CAPPING if where == "app" else PLAIN
        )

    assert found(a_job(max_attempts=asked)).limit == limit
    assert found(a_job(), own=asked).limit == limit
    # A job cannot step over the cap by a policy of its own either.
    assert found(a_job(retry=f"fixed(1s, max_attempts={asked})")).limit == limit
    assert found(a_job(retry=f"fixed(1s, max_attempts={asked})", max_attempts=asked)).limit == limit
    assert found(a_job()).limit == 10


def test_a_job_s_own_policy_may_cap_it_too() -> None:
    assert resolved(a_job(retry=CAPPING.text, max_attempts=20)).limit == 10
    assert resolved(a_job(retry=CAPPING.text, max_attempts=3)).limit == 3


def test_the_lowest_of_all_bounds_holds() -> None:
    job = a_job(max_attempts=50, retry="fixed(1s, max_attempts=30, caps_jobs=true)")
    assert (resolved(job).limit, resolved(job).limit_origin) == (30, "job")
    assert (resolved(job, app=CAPPING).limit, resolved(job, app=CAPPING).limit_origin) == (10, "app")
    lowest = resolved(job, app=CAPPING, cap=7)
    assert (lowest.limit, lowest.limit_origin) == (7, "operator's cap")


def test_a_farther_policy_that_caps_jobs_does_not_bound_a_task_s_own_policy() -> None:
    task = TaskPolicy(retry=Retry.fixed("5s", max_attempts=40))
    assert resolved(task=task, app=CAPPING).limit == 40


def test_harbor_caps_at_25() -> None:
    harbor = Retry.preset("harbor")
    assert resolved(a_job(max_attempts=100), app=harbor).limit == 25
    assert resolved(a_job(max_attempts=5), app=harbor).limit == 5
    assert resolved(app=harbor).limit == 25


def test_a_worker_that_does_not_know_the_task_does_not_apply_the_app_s_bounds() -> None:
    """The task may have a policy of its own, with which the job may run on."""
    job = a_job(max_attempts=5)
    for app in (Retry.never_retry(), Retry.fixed("5s", max_attempts=1, caps_jobs=True)):
        stranger = resolved(job, task=None, app=app)
        assert stranger.limit == 5
        assert decide(job, Vanished(detail="gone"), stranger, NOW, Random(1)).state != "dead"
        assert spent(a_job(max_attempts=5, failures=1), resolved(job, app=app), NOW) == Spent(reason="exhausted")
    own = a_job(max_attempts=5, retry="never_retry()")
    assert decide(own, Vanished(detail="gone"), resolved(own, task=None), NOW, Random(1)).state == "dead"


def test_a_stored_policy_of_an_older_version_has_no_cap() -> None:
    job = a_job(retry="exponential(200ms, cap=5s, jitter=0.2, max_attempts=25, jitter_over_cap=true)", max_attempts=100)
    assert resolved(job).limit == 100
    assert not resolved(job).retry.caps_jobs


def test_a_stored_policy_of_a_newer_version_keeps_what_is_known() -> None:
    found = resolved(a_job(retry="fixed(7s, max_attempts=2, from_the_future=1)"))
    assert (found.retry, found.retry_origin, found.limit) == (Retry.fixed("7s", max_attempts=2), "job", 2)
    unreadable = resolved(a_job(retry="spiral(7s)"))
    assert (unreadable.retry, unreadable.retry_origin) == (PLAIN, "app")


def test_every_candidate_is_told_with_its_origin_and_reason() -> None:
    job = a_job(max_attempts=20)
    found = explained(resolved(job, task=TaskPolicy(max_attempts=30), app=CAPPING, cap=15))
    assert [(each.name, each.max_attempts, each.origin, each.is_effective) for each in found] == [
        ("max_attempts of the job", 20, "job", False),
        ("max_attempts of the task", 30, "task", False),
        ("policy of the app", 10, "app", True),
        ("max_attempts_cap", 15, "operator's cap", False),
    ]
    assert [each.reason for each in found] == [
        "more than the policy of the app allows",
        "the max_attempts of the job is nearer to the job",
        "the policy caps jobs",
        "no job may have more, and the limit that holds is not higher",
    ]


def test_the_reason_names_a_policy_without_retries() -> None:
    found = explained(resolved(a_job(max_attempts=5), app=Retry.never_retry()))
    assert found[0].reason == "more than the policy of the app allows"
    assert found[1].reason == "a policy without retries means one run, whatever is asked for"


def test_a_job_s_own_policy_is_told_beside_the_one_it_replaces() -> None:
    found = explained(resolved(a_job(retry="fixed(1s, max_attempts=6)"), task=TaskPolicy(max_attempts=3)))
    assert [(each.name, each.max_attempts, each.is_effective) for each in found] == [
        ("max_attempts of the task", 3, False),
        ("policy of the job", 6, True),
        ("policy of the app", 4, False),
    ]
    assert found[1].reason == "the nearest to the job that names a limit"
    assert found[0].reason == found[2].reason == "the job has a policy of its own, which brings its own limit"


def test_where_the_task_is_not_known_the_reason_says_so() -> None:
    found = explained(resolved(a_job(max_attempts=5), task=None, app=Retry.never_retry()))
    assert [each.is_effective for each in found] == [True, False]
    assert "not known here" in found[1].reason


def test_rules_that_lower_the_limit_are_told_too() -> None:
    policy = (
        PLAIN.on(ValueError, Retry.never_retry())
        .on(KeyError, Retry.fixed("1s", max_attempts=9))
        .on(OSError, Retry.fixed("1s"))
        .on(TimeoutError, "5s")
        .never(TypeError)
    )
    found = explained(resolved(app=policy))
    assert [(each.name, each.max_attempts, each.origin, each.is_effective, each.reason) for each in found[1:]] == [
        ("rule for KeyError", 9, "app", False, "the limit that holds is not higher"),
        ("rule for ValueError", 1, "app", False, "holds after this error only"),
    ]


limits = st.none() | st.integers(1, 30) | st.just(HIGHEST_LIMIT)


@given(limits, limits, limits, *[st.none() | plain_policies()] * 3, plain_policies(), st.booleans())
def test_exactly_one_candidate_holds_and_it_is_the_limit(
    job_limit: int | None,
    task_limit: int | None,
    cap: int | None,
    own: Retry | None,
    task: Retry | None,
    queue: Retry | None,
    app: Retry,
    is_known: bool,
) -> None:
    job = a_job(max_attempts=job_limit, retry=None if own is None else own.text)
    known = TaskPolicy(retry=task, max_attempts=task_limit) if is_known else None
    found = resolved(job, task=known, queue=queue, app=app, cap=cap)
    [effective] = [each for each in explained(found) if each.is_effective]
    assert effective.max_attempts == found.limit
    chosen = effective_limit(found.choice.candidates())
    assert (chosen.max_attempts, chosen.origin) == (found.limit, found.limit_origin)
    assert found.limit <= (cap or HIGHEST_LIMIT)
    assert all(each.reason for each in explained(found))
    if own is not None or is_known:
        assert not found.retry.bounds_jobs or found.limit <= found.retry.max_attempts
