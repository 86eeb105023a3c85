"""Cron expressions beside two other readers of cron, and each place where they differ and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim, CronSimError
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.unit.cron_texts import Drawn, DrawnField, expressions

from perdure.errors import BadCron
from perdure.model.cron import Cron

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


def sim_ticks(text: str, after: datetime, zone: str, count: int) -> list[datetime]:
    """What cronsim finds; it is told the second after which to look, as it knows nothing smaller."""
    local = after.replace(microsecond=0).astimezone(ZoneInfo(zone))
    found = CronSim(text, local)
    return [next(found).astimezone(UTC) for _ in range(count)]


def ticks(text: str, after: datetime, zone: str, count: int) -> list[datetime]:
    found, cron, tick = [], Cron.parse(text), after
    for _ in range(count):
        following = cron.next(tick, ZoneInfo(zone))
        assert following is not None
        found.append(following)
        tick = following
    return found


def parts_of(*fields: DrawnField) -> list[str]:
    return [part for field in fields for part in field.text.split(",")]


def is_like_cronsim(drawn: Drawn) -> bool:
    """Leaves out `5/2` in the weekday and `5-5/2` anywhere, which have tests of their own."""
    from_one = [part for part in parts_of(drawn.fields[-1]) if "/" in part and "-" not in part and part[0] != "*"]
    return not from_one and not any("/" in part and is_point(part) for part in parts_of(*drawn.fields))


def is_point(part: str) -> bool:
    """Whether it is a range of one value, such as `5-5`."""
    first, dash, last = part.partition("/")[0].partition("-")
    return bool(dash) and first == last


@settings(max_examples=examples(80))
@given(expressions(seconds=False, wraps=False), moments)
def test_five_fields_tick_as_in_cronsim(drawn: Drawn, after: datetime) -> None:
    assume(is_like_cronsim(drawn))
    assert ticks(drawn.text, after, "UTC", 5) == sim_ticks(drawn.text, after, "UTC", 5)


@settings(max_examples=examples(50))
@given(expressions(seconds=True, wraps=False), moments)
def test_six_fields_tick_as_in_cronsim(drawn: Drawn, after: datetime) -> None:
    assume(is_like_cronsim(drawn))
    assert ticks(drawn.text, after, "UTC", 3) == sim_ticks(drawn.text, after, "UTC", 3)


@settings(max_examples=examples(40))
@given(special_days, st.sampled_from(["*", "2", "4,11", "1-6/2"]), special_weekdays, moments)
def test_special_days_tick_as_in_cronsim(day: str, month: str, weekday: str, after: datetime) -> None:
    text = f"30 3 {day} {month} {weekday}"
    assert ticks(text, after, "UTC", 8) == sim_ticks(text, after, "UTC", 8)


def agrees_in_zones(drawn: Drawn) -> bool:
    """cronsim takes a star in the minute for an interval too, even with fixed hours."""
    minute, hour = drawn.fields[:2]
    return hour.is_open or not minute.is_open


@settings(max_examples=examples(100))
@given(expressions(seconds=False, wraps=False), st.sampled_from(ZONES), st.integers(0, 6 * 366 * 24 * 60))
def test_changes_of_the_clocks_are_met_as_in_cronsim(drawn: Drawn, zone: str, minutes: int) -> None:
    assume(agrees_in_zones(drawn) and is_like_cronsim(drawn))
    # The first tick after an instant inside an overlap is left out: cronsim looks at it as at its first pass.
    after = datetime(2011, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    local = after.astimezone(ZoneInfo(zone))
    assume(local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset())
    assert ticks(drawn.text, after, zone, 12) == sim_ticks(drawn.text, after, zone, 12)


def test_a_star_in_the_minute_beside_fixed_hours_is_a_daily_time_here_and_an_interval_in_cronsim() -> None:
    after = datetime(2026, 3, 8, 6, 30, tzinfo=UTC)
    zone = "America/New_York"
    assert ticks("*/30 2 * * *", after, zone, 1) == [datetime(2026, 3, 8, 7, tzinfo=UTC)]
    assert sim_ticks("*/30 2 * * *", after, zone, 1) == [datetime(2026, 3, 9, 6, tzinfo=UTC)]


def test_six_fields_have_daily_times_here_and_not_in_cronsim() -> None:
    after = datetime(2026, 3, 8, 6, 30, tzinfo=UTC)
    zone = "America/New_York"
    assert ticks("0 30 2 * * *", after, zone, 1) == [datetime(2026, 3, 8, 7, tzinfo=UTC)]
    assert sim_ticks("0 30 2 * * *", after, zone, 1) == [datetime(2026, 3, 9, 6, 30, tzinfo=UTC)]


def test_a_weekday_with_a_step_ends_with_saturday_here_and_with_sunday_in_cronsim() -> None:
    assert [tick.isoweekday() for tick in ticks("0 0 * * 1/2", START, "UTC", 4)] == [5, 1, 3, 5]
    assert [tick.isoweekday() for tick in sim_ticks("0 0 * * 1/2", START, "UTC", 4)] == [5, 7, 1, 3]


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


def croniter_ticks(text: str, after: datetime, count: int) -> list[datetime]:
    found = croniter(text, after, second_at_beginning=True)
    return [found.get_next(datetime) for _ in range(count)]


@settings(max_examples=examples(50))
@given(expressions(seconds=True), moments)
def test_six_fields_tick_as_in_croniter(drawn: Drawn, after: datetime) -> None:
    day, _, weekday = drawn.fields[3:]
    # A star with a step beside another day field makes both count in Vixie's cron, and either in croniter.
    assume(not (day.is_open or weekday.is_open) or "*" in (day.text, weekday.text))
    # A range that wraps keeps its rhythm across the end here; croniter starts anew or takes the month for shorter.
    parts = [part for part in parts_of(*drawn.fields) if "-" in part]
    assume(not any("/" in part and int(part.split("-")[0]) > int(part.split("-")[1].split("/")[0]) for part in parts))
    # A range of one value, and a step from the highest value on, are all values to croniter and one here.
    assume(not any(is_point(part) for part in parts))
    highest = zip(drawn.fields, (59, 59, 23, 31, 12, 6), strict=True)
    assume(not any(part.startswith(f"{high}/") for field, high in highest for part in parts_of(field)))
    after = after.replace(microsecond=0)
    assert ticks(drawn.text, after, "UTC", 3) == croniter_ticks(drawn.text, after, 3)


def test_a_star_with_a_step_meets_the_weekday_here_and_either_counts_in_croniter() -> None:
    assert [tick.day for tick in ticks("0 0 0 */2 * MON", START, "UTC", 3)] == [5, 19, 9]
    assert [tick.day for tick in croniter_ticks("0 0 0 */2 * MON", START, 3)] == [3, 5, 7]


def test_a_range_that_wraps_with_a_step_keeps_its_rhythm_here_and_not_in_croniter() -> None:
    text = "0 0 0 25-5/3 * *"
    assert [tick.day for tick in ticks(text, START, "UTC", 4)] == [3, 25, 28, 31]
    assert [tick.day for tick in croniter_ticks(text, START, 4)] == [4, 25, 28, 31]


@pytest.mark.parametrize("field", ["59-59", "59/1"])
def test_a_range_of_one_value_is_that_value_here_and_all_of_them_in_croniter(field: str) -> None:
    assert [tick.minute for tick in ticks(f"0 {field} * * * *", START, "UTC", 2)] == [59, 59]
    assert [tick.minute for tick in croniter_ticks(f"0 {field} * * * *", START, 2)] == [1, 2]
