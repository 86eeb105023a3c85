"""What single errors change: rules by exception class, the most specific one wins."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.errors import BadPolicy
from perdure.model.failure import capture
from perdure.model.policy.retry import Never, Retry, Rule, UseDelay, UsePolicy


class ThrottledError(ConnectionError):
    pass


def rule(policy: Retry, error: BaseException) -> Rule | None:
    return policy.rule_for(capture(error).lineage)


def test_without_a_rule_there_is_none() -> None:
    assert rule(Retry.fixed("5s"), ValueError()) is None
    assert rule(Retry.fixed("5s").never(KeyError), ValueError()) is None


def test_never_names_errors_that_are_not_retried() -> None:
    policy = Retry.fixed("5s").never(ValueError, TypeError)
    assert rule(policy, ValueError()) == Never()
    assert rule(policy, TypeError()) == Never()


def test_a_rule_holds_for_subclasses() -> None:
    assert rule(Retry.fixed("5s").never(LookupError), KeyError("x")) == Never()


def test_the_most_specific_class_wins() -> None:
    policy = Retry.fixed("5s").never(OSError).on(ConnectionError, "1m").on(Exception, "2m")
    assert rule(policy, ThrottledError()) == UseDelay(timedelta(minutes=1))
    assert rule(policy, PermissionError()) == Never()
    assert rule(policy, ValueError()) == UseDelay(timedelta(minutes=2))
    assert rule(policy.on(ThrottledError, "3m"), ThrottledError()) == UseDelay(timedelta(minutes=3))


def test_an_error_may_have_a_policy_of_its_own() -> None:
    nested = Retry.fixed("1m", max_attempts=30)
    assert rule(Retry.fixed("5s").on(ThrottledError, nested), ThrottledError()) == UsePolicy(nested)
    assert rule(Retry.fixed("5s").on(ThrottledError, "fixed(1m, max_attempts=30)"), ThrottledError()) == UsePolicy(
        nested
    )
    assert rule(Retry.fixed("5s").on(ThrottledError, "harbor"), ThrottledError()) == UsePolicy(Retry.preset("harbor"))


@pytest.mark.parametrize("delay", ["30s", 30, 30.0, timedelta(seconds=30)])
def test_an_error_may_have_a_delay_of_its_own(delay: str | float | timedelta) -> None:
    assert rule(Retry.fixed("5s").on(ThrottledError, delay), ThrottledError()) == UseDelay(timedelta(seconds=30))


def test_several_errors_share_a_rule() -> None:
    one = Retry.fixed("5s").on(TimeoutError, KeyError, "1m")
    assert one == Retry.fixed("5s").on((TimeoutError, KeyError), "1m")
    assert one == Retry.fixed("5s").on(KeyError, "1m").on(TimeoutError, "1m")
    assert Retry.fixed("5s").never((TimeoutError, (KeyError,))) == Retry.fixed("5s").never(TimeoutError, KeyError)


def test_errors_may_be_named_by_text() -> None:
    policy = Retry.fixed("5s").never("ValueError", f"{ThrottledError.__module__}.ThrottledError")
    assert policy == Retry.fixed("5s").never(ValueError, ThrottledError)
    assert Retry.fixed("5s").never("builtins.ValueError") == Retry.fixed("5s").never(ValueError)


def test_the_later_rule_for_an_error_replaces_the_earlier() -> None:
    assert Retry.fixed("5s").never(KeyError).on(KeyError, "1m") == Retry.fixed("5s").on(KeyError, "1m")


def test_a_nested_policy_has_no_rules_of_its_own() -> None:
    with pytest.raises(BadPolicy, match="outer policy"):
        Retry.fixed("5s").on(KeyError, Retry.fixed("1m").never(ValueError))


@pytest.mark.parametrize("wrong", [int, 5, None, "", "a\x00b", "\ud800", "x" * 251, ValueError("an instance")])
def test_what_is_no_error_is_refused(wrong: object) -> None:
    with pytest.raises(BadPolicy):
        Retry.fixed("5s").never(wrong)  # type: ignore[arg-type]
    with pytest.raises(BadPolicy):
        Retry.fixed("5s").on(wrong, "5s")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "soon", "-5s", -5, ValueError, True, "400d"])
def test_what_is_no_delay_and_no_policy_is_refused(wrong: object) -> None:
    with pytest.raises(BadPolicy):
        Retry.fixed("5s").on(KeyError, wrong)  # type: ignore[arg-type]


def test_rules_need_errors() -> None:
    with pytest.raises(BadPolicy):
        Retry.fixed("5s").never()
    with pytest.raises(BadPolicy):
        Retry.fixed("5s").on(KeyError)
