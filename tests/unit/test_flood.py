"""A flood of due jobs: the promoter leaves it to its fetcher for as long as the fetcher gets on with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.clock import VirtualClock
from perdure.runtime.flood import Flood


class Both:
    """The flood, and how often each side was called."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.begun = 0
        self.over = 0
        self.flood = Flood(clock=self.clock, begun=self._begin, over=self._end)

    def _begin(self) -> None:
        self.begun += 1

    def _end(self) -> None:
        self.over += 1

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))


@pytest.fixture
def both() -> Both:
    return Both()


def test_a_fetcher_that_has_not_fetched_yet_may_be_asked(both: Both) -> None:
    assert both.flood.may_begin
    assert not both.flood.is_on
    assert both.flood.seconds_left() == 0


def test_a_fetcher_that_finds_enough_ready_is_not_asked(both: Both) -> None:
    both.flood.fetched(is_short=False, due=None)
    assert not both.flood.may_begin
    both.flood.fetched(is_short=True, due=None)
    assert both.flood.may_begin


def test_while_fetches_take_what_is_due_the_promoter_waits(both: Both) -> None:
    both.flood.begin()
    assert both.begun == 1
    for _ in range(20):
        assert both.flood.is_on
        assert both.flood.seconds_left() > 0
        both.pass_time(0.2)
        both.flood.fetched(is_short=False, due=1000)
    assert both.over == 0


def test_a_fetch_that_finds_too_little_ends_it_and_calls_the_promoter(both: Both) -> None:
    both.flood.begin()
    both.flood.fetched(is_short=True, due=17)
    assert not both.flood.is_on
    assert both.over == 1
    assert both.flood.seconds_left() == 0


def test_a_fetch_that_ready_jobs_filled_neither_ends_nor_prolongs_it(both: Both) -> None:
    both.flood.begin()
    before = both.flood.seconds_left()
    both.pass_time(before / 2)
    both.flood.fetched(is_short=False, due=0)
    assert both.flood.is_on
    assert both.flood.seconds_left() == pytest.approx(before / 2)


def test_a_fetch_that_was_on_its_way_before_does_not_end_it(both: Both) -> None:
    both.flood.begin()
    both.flood.fetched(is_short=True, due=None)
    assert both.flood.is_on
    assert both.over == 0


def test_when_nobody_gets_on_with_it_the_promoter_does(both: Both) -> None:
    both.flood.begin()
    both.pass_time(both.flood.seconds_left())
    assert both.flood.seconds_left() == 0
    assert not both.flood.is_on


def test_the_fetcher_is_not_asked_again_before_all_that_is_due_was_promoted(both: Both) -> None:
    both.flood.begin()
    both.flood.fetched(is_short=True, due=0)
    assert not both.flood.may_begin
    both.flood.fetched(is_short=True, due=None)
    assert not both.flood.may_begin
    both.flood.subside()
    assert both.flood.may_begin
