"""Retry policies as values: how they are built, what they refuse, how they compare."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.errors import BadPolicy, UsageError
from perdure.model.policy.curve import Fixed
from perdure.model.policy.retry import HIGHEST_LIMIT, Retry

HUGE = [pytest.param(10**5000, id="huge"), pytest.param(-(10**5000), id="-huge")]


def seconds(policy: Retry, count: int) -> list[float]:
    return [policy.ceiling(n).total_seconds() for n in range(1, count + 1)]


def test_exponential_multiplies_from_its_base() -> None:
    assert seconds(Retry.exponential("2s", factor=3), 4) == [2, 6, 18, 54]


def test_exponential_stays_at_its_cap() -> None:
    assert seconds(Retry.exponential("2s", factor=3, cap="20s"), 4) == [2, 6, 18, 20]


def test_exponential_takes_fractional_factors() -> None:
    assert seconds(Retry.exponential("2s", factor=1.5), 4) == [2, 3, 4.5, 6.75]


def test_linear_grows_by_its_step() -> None:
    assert seconds(Retry.linear("5s", cap="12s"), 4) == [5, 10, 12, 12]


def test_fixed_is_the_same_every_time() -> None:
    assert seconds(Retry.fixed("5s"), 3) == [5, 5, 5]


def test_delays_go_one_by_one_and_the_last_repeats() -> None:
    assert seconds(Retry.delays(["1s", 5, timedelta(minutes=1)]), 5) == [1, 5, 60, 60, 60]


def test_a_function_gives_the_delays() -> None:
    assert seconds(Retry.function(lambda n: f"{n * n}s"), 3) == [1, 4, 9]


def test_a_cap_holds_for_every_curve() -> None:
    assert seconds(Retry.fixed("5s", cap="3s"), 2) == [3, 3]
    assert seconds(Retry.delays(["1s", "9s"], cap="3s"), 2) == [1, 3]
    assert seconds(Retry.function(lambda n: n * 2, cap="3s"), 2) == [2, 3]


def test_never_retry_is_one_attempt() -> None:
    assert Retry.never_retry().max_attempts == 1
    assert Retry.never_retry().max_retries == 0


@pytest.mark.parametrize("n", [0, -1, -(10**9)])
def test_before_the_first_failure_there_is_no_delay(n: int) -> None:
    for policy in (Retry.exponential("2s"), Retry.linear("2s"), Retry.fixed("2s"), Retry.delays(["2s"])):
        assert policy.ceiling(n) == timedelta(0)


@pytest.mark.parametrize("limit", [None, 45])
def test_compute_delay_of_attempt_is_ceiling_of_attempt_minus_one(limit: int | None) -> None:
    policy = Retry.exponential("5s", cap=limit or 300)
    computed = [policy.ceiling(attempt - 1).total_seconds() for attempt in range(-1, 11)]
    grown = [5, 10, 20, 40, 45, 45, 45, 45, 45] if limit else [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert computed == [0, 0, 0, *grown]


def test_back_off_does_not_overflow_at_high_attempts() -> None:
    for n in (37, 64, 1_024, 10**6):
        assert Retry.exponential("500ms", cap="30s").ceiling(n) == timedelta(seconds=30)
        assert Retry.exponential("500ms").ceiling(n) <= timedelta(days=365)
        assert Retry.exponential("500ms", factor=1.0000001).ceiling(n) >= timedelta(milliseconds=500)


def test_an_uncapped_curve_saturates_at_a_year() -> None:
    year = timedelta(days=365)
    assert Retry.exponential("1s", factor=4).ceiling(10**6) == year
    assert Retry.exponential("1us").ceiling(10**6) == year
    assert Retry.linear("1d").ceiling(10**6) == year
    assert Retry.function(lambda n: timedelta(days=n)).ceiling(10**6) == year


def test_the_default_limit_is_four_attempts() -> None:
    for policy in (Retry.exponential(1), Retry.fixed(1), Retry.linear(1), Retry.delays([1])):
        assert policy.max_attempts == 4
        assert policy.max_retries == 3


def test_max_retries_is_one_less_than_max_attempts() -> None:
    assert Retry.fixed("5s", max_retries=3) == Retry.fixed("5s", max_attempts=4)
    assert Retry.fixed("5s", max_retries=0).max_attempts == 1


def test_both_spellings_of_the_limit_at_once_are_refused() -> None:
    with pytest.raises(BadPolicy, match="two spellings"):
        Retry.fixed("5s", max_attempts=4, max_retries=3)


def test_zero_attempts_are_refused_and_explained() -> None:
    with pytest.raises(BadPolicy, match="max_retries=0"):
        Retry.fixed("5s", max_attempts=0)


@pytest.mark.parametrize("wrong", [-1, True, False, 2.0, "3", HIGHEST_LIMIT + 1, *HUGE])
def test_limits_that_are_no_limits_are_refused(wrong: object) -> None:
    with pytest.raises(BadPolicy):
        Retry.fixed("5s", max_attempts=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1, True, 2.0, HIGHEST_LIMIT])
def test_retries_that_are_no_limit_are_refused(wrong: object) -> None:
    with pytest.raises(BadPolicy):
        Retry.fixed("5s", max_retries=wrong)  # type: ignore[arg-type]


def test_unlimited_is_a_value_of_its_own() -> None:
    assert Retry.fixed("5s", max_attempts="unlimited").max_attempts == HIGHEST_LIMIT
    assert Retry.fixed("5s", max_retries="unlimited").max_attempts == HIGHEST_LIMIT


def test_recoveries_default_to_none_free_and_may_all_be_free() -> None:
    assert Retry.fixed("5s").max_recoveries == 0
    assert Retry.fixed("5s", max_recoveries=None).max_recoveries is None
    assert Retry.fixed("5s", max_recoveries=3).max_recoveries == 3


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "3"])
def test_recoveries_that_are_no_count_are_refused(wrong: object) -> None:
    with pytest.raises(BadPolicy, match="max_recoveries"):
        Retry.fixed("5s", max_recoveries=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [0, 0.99, -2, True, "2", float("nan"), float("inf"), 10**400])
def test_factors_below_one_or_without_end_are_refused(factor: object) -> None:
    with pytest.raises(BadPolicy, match="factor"):
        Retry.exponential("1s", factor=factor)  # type: ignore[arg-type]


@pytest.mark.parametrize("jitter", ["Full", "", True, None, -0.1, 1.1, float("nan"), [0.1]])
def test_unknown_jitters_are_refused(jitter: object) -> None:
    with pytest.raises(BadPolicy, match="jitter"):
        Retry.exponential("1s", jitter=jitter)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["cap", "within"])
def test_zero_does_not_mean_unset(option: str) -> None:
    with pytest.raises(BadPolicy, match="0 does not mean unset"):
        Retry.exponential("1s", **{option: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("wait", ["5 parsecs", "", -1, None, float("nan"), True, b"5s"])
def test_unreadable_delays_are_refused_as_bad_policies(wait: object) -> None:
    for build in (Retry.exponential, Retry.fixed, Retry.linear, lambda wait: Retry.delays([wait])):
        with pytest.raises(BadPolicy):
            build(wait)  # type: ignore[operator]


def test_delays_beyond_a_year_are_refused() -> None:
    with pytest.raises(BadPolicy, match="365 days"):
        Retry.fixed("366d")
    with pytest.raises(BadPolicy, match="365 days"):
        Retry.exponential("1s", cap="366d")


@pytest.mark.parametrize("waits", [[], "1s", 5, None, [1] * 1001])
def test_delays_need_a_list_of_some(waits: object) -> None:
    with pytest.raises(BadPolicy):
        Retry.delays(waits)  # type: ignore[arg-type]


def test_bad_policies_are_usage_errors_and_value_errors() -> None:
    with pytest.raises(UsageError):
        Retry.fixed("x")
    with pytest.raises(ValueError, match="x"):
        Retry.fixed("x")


def test_equal_policies_are_equal_and_hash_alike() -> None:
    one = Retry.exponential("2s", factor=2.0, cap=30).never(ValueError).on(TimeoutError, "5s")
    other = Retry.exponential(2, cap="30s").on("TimeoutError", 5).never("ValueError")
    assert one == other
    assert hash(one) == hash(other)
    assert one != other.with_limit(5)


def test_policies_that_never_wait_do_not_differ_by_jitter() -> None:
    assert (
        Retry.fixed(0)
        == Retry.fixed(0, jitter="full")
        == Retry.fixed("5s", max_attempts=4).__class__(curve=Fixed(timedelta(0)))
    )


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Retry.fixed("5s").max_attempts = 7  # type: ignore[misc]


def test_with_limit_changes_the_limit_alone() -> None:
    policy = Retry.exponential("2s", cap="1m", within="1d").never(ValueError)
    assert policy.with_limit(9) == Retry.exponential("2s", cap="1m", within="1d", max_attempts=9).never(ValueError)
    with pytest.raises(BadPolicy):
        policy.with_limit(0)


def test_replace_changes_what_is_named_and_can_take_it_away() -> None:
    policy = Retry.exponential("2s", cap="1m", within="1d", max_recoveries=3)
    changed = policy.replace(cap=None, within=None, jitter="none", max_recoveries=None, max_retries=0)
    assert changed == Retry.exponential("2s", jitter="none", max_attempts=1, max_recoveries=None)
    assert policy.replace() == policy


def test_coerce_takes_a_policy_a_name_or_a_text() -> None:
    policy = Retry.fixed("5s")
    assert Retry.coerce(policy) is policy
    assert Retry.coerce("fixed") == policy
    assert Retry.coerce("fixed(7s)") == Retry.fixed("7s")
    with pytest.raises(BadPolicy, match="preset"):
        Retry.coerce(5)  # type: ignore[arg-type]


def test_a_function_that_fails_is_told_by_ceiling() -> None:
    def broken(n: int) -> str:
        raise KeyError(n)

    with pytest.raises(BadPolicy, match=r"raised KeyError for n=2"):
        Retry.function(broken).ceiling(2)
    with pytest.raises(BadPolicy, match="n=3"):
        Retry.function(lambda n: "soon").ceiling(3)
    with pytest.raises(BadPolicy, match="function"):
        Retry.function("5s")  # type: ignore[arg-type]


def test_a_function_may_give_negative_or_endless_timedeltas() -> None:
    assert Retry.function(lambda n: timedelta(seconds=-5)).ceiling(1) == timedelta(0)
    assert Retry.function(lambda n: timedelta.max).ceiling(1) == timedelta(days=365)


def test_a_list_of_delays_is_used_to_its_end_unless_a_limit_is_given():
    assert Retry.delays(["1s", "10s", "1m", "10m", "1h"]).max_attempts == 6
    assert Retry.delays(["1s"]).max_attempts == 4
    assert Retry.delays(["1s", "10s", "1m", "10m", "1h"], max_attempts=3).max_attempts == 3


def test_every_constructor_takes_caps_jobs() -> None:
    built = [
        Retry.exponential("1s", caps_jobs=True),
        Retry.fixed("1s", caps_jobs=True),
        Retry.linear("1s", caps_jobs=True),
        Retry.delays(["1s"], caps_jobs=True),
        Retry.function(lambda n: n, caps_jobs=True),
        Retry.preset("standard").replace(caps_jobs=True),
    ]
    assert [policy.caps_jobs for policy in built] == [True] * 6
    assert not Retry.exponential("1s").caps_jobs
    assert built[0] != Retry.exponential("1s")
    assert built[0].replace(max_attempts=9).caps_jobs
    assert built[0].never(ValueError).caps_jobs
    assert not built[0].replace(caps_jobs=False).caps_jobs


@pytest.mark.parametrize("wrong", [1, 0, "yes", None, 10])
@pytest.mark.parametrize("option", ["caps_jobs", "jitter_over_cap"])
def test_options_that_are_on_or_off_take_truths_only(option: str, wrong: object) -> None:
    with pytest.raises(BadPolicy, match=f"{option} is .* and it is True or False"):
        Retry.fixed("1s", **{option: wrong})  # type: ignore[arg-type]


def test_a_policy_without_retries_or_that_caps_jobs_bounds_them() -> None:
    assert [
        policy.bounds_jobs
        for policy in (
            Retry.never_retry(),
            Retry.exponential("5s", max_retries=0),
            Retry.fixed("5s", caps_jobs=True),
            Retry.fixed("5s", max_attempts=2),
        )
    ] == [True, True, True, False]
