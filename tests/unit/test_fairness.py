"""Fairness: the share of each lane holds for every batch size, one included."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import BadOption
from perdure.model.queue.fairness import START_CARRY, WHOLE, Fairness


def retries_of(fairness: Fairness, sizes: list[int], carry: int = START_CARRY) -> list[int]:
    given_to_retries = []
    for size in sizes:
        fresh, retry, carry = fairness.split(size, carry)
        assert fresh + retry == size
        given_to_retries.append(retry)
    return given_to_retries


def test_fetches_of_one_give_every_fifth_to_retries() -> None:
    assert sum(retries_of(Fairness(), [1] * 1000)) == 200


def test_every_window_of_fetches_of_one_holds_the_share() -> None:
    retries = retries_of(Fairness(), [1] * 3000)
    for start in range(2000):
        assert abs(sum(retries[start : start + 1000]) - 200) <= 1


def test_fresh_work_is_not_starved_by_fetches_of_one() -> None:
    """A share that is rounded up for each fetch would give fresh work nothing at all."""
    assert 0 in retries_of(Fairness(retry_share=0.9), [1] * 10)


def test_retries_are_not_starved_by_fetches_of_one() -> None:
    """A share that is rounded down for each fetch would give retries nothing at all."""
    assert 1 in retries_of(Fairness(retry_share=0.1), [1] * 10)


def test_a_batch_of_ten_is_split_eight_to_two() -> None:
    assert Fairness().split(10, START_CARRY)[:2] == (8, 2)


def test_nothing_asked_changes_nothing() -> None:
    assert Fairness().split(0, 123) == (0, 0, 123)


@pytest.mark.parametrize(("share", "retries"), [(0, 0), (1, 50), (0.5, 25)])
def test_the_whole_range_of_shares_is_exact(share: float, retries: int) -> None:
    assert sum(retries_of(Fairness(retry_share=share), [1] * 50)) == retries


# Proves [INV-9].
@given(
    st.floats(0, 1),
    st.lists(st.integers(0, 500), max_size=60),
    st.integers(0, WHOLE - 1),
)
def test_every_run_of_splits_is_within_one_job_of_the_exact_share(share: float, sizes: list[int], carry: int) -> None:
    retries = retries_of(Fairness(retry_share=share), sizes, carry)
    exact = Fraction(round(share * WHOLE), WHOLE)
    for start in range(len(sizes)):
        given_to_retries = sum(retries[start:])
        assert abs(given_to_retries - exact * sum(sizes[start:])) < 1


@given(st.floats(0, 1), st.integers(0, 10**6), st.integers(0, WHOLE - 1))
def test_a_split_gives_out_exactly_what_was_asked(share: float, count: int, carry: int) -> None:
    fresh, retry, left = Fairness(retry_share=share).split(count, carry)
    assert fresh + retry == count
    assert fresh >= 0
    assert retry >= 0
    assert 0 <= left < WHOLE


def test_an_idle_lane_saves_nothing_up() -> None:
    """However long the retry lane was empty, the next fetch of one gives it one job at most."""
    fairness = Fairness()
    carry = START_CARRY
    for _ in range(10_000):
        carry = fairness.split(1, carry).carry
    assert fairness.split(1, carry).retry <= 1


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), float("inf"), True, "0.2", None])
def test_shares_outside_zero_to_one_are_refused(share: object) -> None:
    with pytest.raises(BadOption, match="retry_share"):
        Fairness(retry_share=share)  # type: ignore[arg-type]


@pytest.mark.parametrize("running", [0, -1, True, 1.5, "3"])
def test_a_cap_on_running_retries_is_a_positive_number(running: object) -> None:
    with pytest.raises(BadOption, match="max_retries_running"):
        Fairness(max_retries_running=running)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, 5, "a/b", "a\n"])
def test_a_retry_queue_needs_the_name_of_a_queue(name: object) -> None:
    with pytest.raises(BadOption, match="retry_queue"):
        Fairness(retry_queue=name)  # type: ignore[arg-type]


def test_strictness_is_a_truth_value() -> None:
    with pytest.raises(BadOption, match="is_strict"):
        Fairness(is_strict="yes")  # type: ignore[arg-type]


def test_a_fairness_is_a_value() -> None:
    one = Fairness(retry_share=0.3, is_strict=True, retry_queue="mail-retries", max_retries_running=3)
    assert one == Fairness(retry_share=0.3, is_strict=True, retry_queue="mail-retries", max_retries_running=3)
    assert hash(one) != hash(Fairness())
    with pytest.raises(AttributeError):
        one.retry_share = 0.5  # type: ignore[misc]
