"""Cron expressions beside two other readers of cron; cron_oracles.py lists where these differ, and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.unit.cron_oracles import (
    KNOWN_DIFFERENCES,
    ORACLES,
    Case,
    Difference,
    clock_changes_of,
    cronsim_ticks,
    is_known_to_differ,
)
from tests.unit.cron_texts import Drawn, expressions, read_expression
from tests.unit.cron_walk import Walk

from perdure.errors import BadCron
from perdure.model.cron.expression import Cron

START = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Santiago",
    "Pacific/Apia",
]

moments = st.datetimes(datetime(2000, 1, 1), datetime(2080, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=UTC)
)
special_days = st.sampled_from(["L", "LW", "1", "15", "L,10", "1-7", "*"])
special_weekdays = st.sampled_from(["5L", "0L", "MON#1", "5#3", "SUN#5", "1,3L", "2-4", "SAT,SUN", "*"])


def ticks(text: str, after: datetime, zone: str, count: int) -> list[datetime]:
    found, cron, tick = [], Cron.parse(text), after
    for _ in range(count):
        following = cron.next(tick, ZoneInfo(zone))
        assert following is not None
        found.append(following)
        tick = following
    return found


def check(oracle: str, drawn: Drawn, zone: str, after: datetime, count: int) -> None:
    """Both find the same ticks, unless the table says that this is a case in which they differ."""
    expected = ticks(drawn.text, after, zone, count)
    assume(not is_known_to_differ(oracle, Case(drawn, zone, after, expected[-1])))
    assert ORACLES[oracle](drawn.text, after, zone, count) == expected


@settings(max_examples=examples(80))
@given(expressions(seconds=False, wraps=False), moments)
def test_five_fields_tick_as_in_cronsim(drawn: Drawn, after: datetime) -> None:
    check("cronsim", drawn, "UTC", after, 5)


@settings(max_examples=examples(50))
@given(expressions(seconds=True, wraps=False), moments)
def test_six_fields_tick_as_in_cronsim(drawn: Drawn, after: datetime) -> None:
    check("cronsim", drawn, "UTC", after, 3)


@settings(max_examples=examples(40))
@given(special_days, st.sampled_from(["*", "2", "4,11", "1-6/2"]), special_weekdays, moments)
def test_special_days_tick_as_in_cronsim(day: str, month: str, weekday: str, after: datetime) -> None:
    text = f"30 3 {day} {month} {weekday}"
    assert ticks(text, after, "UTC", 8) == cronsim_ticks(text, after, "UTC", 8)


changes = st.sampled_from([(zone, at) for zone in ZONES for at in clock_changes_of(zone)])


@settings(max_examples=examples(100))
@given(expressions(seconds=False, wraps=False), changes, st.integers(0, 3 * 24 * 60))
def test_changes_of_the_clocks_are_met_as_in_cronsim(drawn: Drawn, change: tuple[str, datetime], minutes: int) -> None:
    zone, at = change
    check("cronsim", drawn, zone, at + timedelta(hours=6) - timedelta(minutes=minutes), 12)


@pytest.mark.parametrize(
    "difference", KNOWN_DIFFERENCES, ids=lambda difference: f"{difference.oracle}: {difference.name}"
)
def test_each_known_difference_is_still_there_and_our_answer_follows_from_the_rules(difference: Difference) -> None:
    text, zone, count = difference.text, difference.zone, len(difference.ours)
    after = datetime.fromisoformat(difference.after).replace(tzinfo=UTC)
    ours, theirs = ([datetime.fromisoformat(tick) for tick in told] for told in (difference.ours, difference.theirs))
    assert ticks(text, after, zone, count) == ours
    assert ORACLES[difference.oracle](text, after, zone, count) == theirs
    assert ours != theirs
    drawn = read_expression(text)
    walked = Walk(zone, after - timedelta(days=2), ours[-1] + timedelta(minutes=1), timedelta(minutes=1))
    assert [tick for tick in walked.ticks(drawn) if tick > after] == ours
    assert difference.concerns(Case(drawn, zone, after, ours[-1]))


@settings(max_examples=examples(40))
@given(expressions(seconds=True) | expressions(seconds=False))
def test_the_second_reading_of_an_expression_is_what_was_drawn(drawn: Drawn) -> None:
    assert read_expression(drawn.text) == drawn


@pytest.mark.parametrize(
    "text", ["0 0 * * fri-mon", "0 22-2 * * *", "55-5 * * * *", "0 0 1 * ?", "0 0 15W * *", "0 0 L-3 * *"]
)
def test_what_cronsim_refuses_and_perdure_reads(text: str) -> None:
    Cron.parse(text)
    with pytest.raises(CronSimError):
        CronSim(text, START)


@pytest.mark.parametrize("text", ["*/90 * * * *", "0 0 L/2 * *", "0 0 */99 * *"])
def test_what_cronsim_reads_and_perdure_refuses(text: str) -> None:
    CronSim(text, START)
    with pytest.raises(BadCron):
        Cron.parse(text)


@settings(max_examples=examples(50))
@given(expressions(seconds=True), moments)
def test_six_fields_tick_as_in_croniter(drawn: Drawn, after: datetime) -> None:
    check("croniter", drawn, "UTC", after.replace(microsecond=0), 3)
