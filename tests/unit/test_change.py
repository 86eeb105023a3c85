"""What a person may want to be different about a job: checked, and told apart from what was not said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import UNSET

from perdure.errors import UsageError
from perdure.model.change import Change, make_change

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)


def test_what_is_not_said_is_nothing() -> None:
    assert make_change() == Change()
    assert make_change().is_empty
    assert make_change().max_attempts is UNSET


@pytest.mark.parametrize(
    "given", [{"priority": 0}, {"delay": 0}, {"run_at": MOMENT}, {"queue": "mail"}, {"unset": ["max_attempts"]}]
)
def test_a_value_that_is_usual_is_still_said(given: dict[str, Any]) -> None:
    assert not make_change(**given).is_empty


def test_the_two_spellings_of_the_limit_are_one() -> None:
    assert make_change(max_retries=0) == make_change(max_attempts=1)
    assert make_change(max_retries=4).max_attempts == 5
    assert make_change(unset=["max_retries"]).max_attempts is None


def test_a_delay_is_a_duration_in_any_spelling() -> None:
    assert make_change(delay="1h30m").delay == make_change(delay=5400).delay == timedelta(minutes=90)


@pytest.mark.parametrize(
    "wrong",
    [
        {"delay": "1h", "run_at": MOMENT},
        {"delay": "soon"},
        {"delay": -1},
        {"run_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - without a time zone on purpose
        {"run_at": datetime(9999, 1, 1, tzinfo=UTC)},
        {"run_at": "2030-01-01"},
        {"priority": 101},
        {"priority": True},
        {"queue": ""},
        {"queue": "a b"},
        {"max_attempts": 0},
        {"max_attempts": 2, "max_retries": 1},
        {"max_retries": -1},
        {"unset": ["priority"]},
        {"max_attempts": 2, "unset": ["max_attempts"]},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make_change(**wrong)
