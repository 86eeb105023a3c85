"""Ticks on the days when clocks change, beside a slow reading of the rule that walks the clock second by second."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.unit.cron_texts import Drawn, DrawnField, expressions, fields
from tests.unit.cron_walk import Walk, walk_around

from perdure.model.cron.expression import Cron

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

CHANGES = [
    ("America/New_York", "2026-03-08T07:00"),  # 02:00 to 03:00
    ("America/New_York", "2026-11-01T06:00"),  # 02:00 back to 01:00
    ("America/New_York", "2187-03-11T07:00"),  # far in the future
    ("Europe/London", "2026-03-29T01:00"),
    ("Europe/London", "2026-10-25T01:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),  # half an hour back
    ("Australia/Lord_Howe", "2026-10-03T15:30"),  # half an hour forward
    ("Africa/Casablanca", "2026-02-15T02:00"),  # back for the Ramadan
    ("Africa/Casablanca", "2026-03-22T02:00"),  # and forward again
    ("Pacific/Apia", "2011-12-30T10:00"),  # a whole day left out
    ("America/Santiago", "2026-04-05T03:00"),  # midnight back to 23:00 of the day before
    ("America/Santiago", "2026-09-06T04:00"),  # midnight to 01:00
    ("America/Havana", "2026-11-01T05:00"),  # 01:00 back to midnight
    ("Africa/Monrovia", "1972-01-07T00:44:30"),  # forward by 44 minutes and a half
    ("Pacific/Kwajalein", "1993-08-21T12:00"),  # another day left out
    ("Europe/Amsterdam", "1937-06-30T22:40:28"),  # forward by 28 seconds, in data that keep them
]


def check(walked: Walk, drawn: Drawn, asked: list[float]) -> None:
    """Every tick forward, every tick backward, and the neighbours of some instants in between."""
    cron = Cron.parse(drawn.text)
    expected = walked.ticks(drawn)
    if len(expected) < 400:
        found, tick = [], cron.next(walked.start - SECOND, walked.zone)
        while tick is not None and tick < walked.end:
            found.append(tick)
            tick = cron.next(tick, walked.zone)
        assert found == expected
        found, tick = [], cron.previous(walked.end, walked.zone)
        while tick is not None and tick >= walked.start:
            found.append(tick)
            tick = cron.previous(tick, walked.zone)
        assert found == expected[::-1]
    for part in asked:
        at = walked.start + part * (walked.end - walked.start)
        for instant in (at, at.replace(microsecond=0), at.replace(second=0, microsecond=0)):
            if instant < walked.start:
                continue
            later, earlier = expected[bisect_right(expected, instant) :], expected[: bisect_left(expected, instant)]
            if later:
                assert cron.next(instant, walked.zone) == later[0]
            if earlier:
                assert cron.previous(instant, walked.zone) == earlier[-1]


def walk(change: tuple[str, str], reach: timedelta, pace: timedelta) -> Walk:
    zone, moment = change
    return walk_around(zone, datetime.fromisoformat(moment).replace(tzinfo=UTC), reach, pace)


near = st.lists(st.floats(0.4, 0.6) | st.floats(0, 1), min_size=3, max_size=6)


@settings(max_examples=examples(90))
@given(st.sampled_from(CHANGES[:-1]), expressions(seconds=False), near)
def test_every_tick_of_two_days_round_a_change_is_where_the_rule_puts_it(
    change: tuple[str, str], drawn: Drawn, asked: list[float]
) -> None:
    pace = SECOND * 30 if change[0] == "Africa/Monrovia" else MINUTE
    check(walk(change, timedelta(hours=30), pace), drawn, asked)


@st.composite
def expressions_near(draw: st.DrawFn) -> Drawn:
    """With seconds, on every day: a window of an hour or two would hardly ever see another."""
    days = [DrawnField("*", frozenset(range(32))), DrawnField("*", frozenset(range(13)))]
    clock = [
        draw(fields(0, 59)),
        draw(fields(0, 59)),
        draw(fields(0, 23) | st.just(DrawnField("*", frozenset(range(24))))),
    ]
    return Drawn((*clock, *days, days[0]))


@settings(max_examples=examples(60))
@given(st.sampled_from(CHANGES), expressions_near(), near)
def test_every_second_round_a_change_is_where_the_rule_puts_it(
    change: tuple[str, str], drawn: Drawn, asked: list[float]
) -> None:
    check(walk(change, timedelta(hours=1), SECOND), drawn, asked)


def local_ticks(text: str, zone: str, day: str, days: int = 1) -> list[str]:
    """The ticks of some days of a zone, as the wall clock shows them, `'` after a time that is shown again."""
    place, cron = ZoneInfo(zone), Cron.parse(text)
    start = datetime.fromisoformat(day).replace(tzinfo=place)
    end = (datetime.fromisoformat(day) + timedelta(days=days)).replace(tzinfo=place)
    found, tick = [], cron.next(start.astimezone(UTC) - SECOND, place)
    while tick is not None and tick < end.astimezone(UTC):
        local = tick.astimezone(place)
        found.append(format(local, "%d %H:%M:%S" if days > 1 else "%H:%M:%S") + "'" * local.fold)
        tick = cron.next(tick, place)
    return found


@pytest.mark.parametrize(
    ("text", "zone", "day", "expected"),
    [
        ("30 2 * * *", "America/New_York", "2026-03-08", "03:00:00"),
        ("15 30 2 * * *", "America/New_York", "2026-03-08", "03:00:00"),
        ("0,20,40 2 * * *", "America/New_York", "2026-03-08", "03:00:00"),
        ("0 2,3 * * *", "America/New_York", "2026-03-08", "03:00:00"),
        ("30 2,3 * * *", "America/New_York", "2026-03-08", "03:00:00 03:30:00"),
        ("*/30 2 * * *", "America/New_York", "2026-03-08", "03:00:00"),
        ("30 1 * * *", "America/New_York", "2026-11-01", "01:30:00"),
        ("*/30 1 * * *", "America/New_York", "2026-11-01", "01:00:00 01:30:00"),
        ("30 1-2 * * *", "America/New_York", "2026-11-01", "01:30:00 02:30:00"),
        ("0 */2 * * *", "Europe/Berlin", "2026-10-25", "00:00:00 02:00:00 02:00:00' 04:00:00 06:00:00 08:00:00"),
        ("0 */2 * * *", "Europe/Berlin", "2026-03-29", "00:00:00 04:00:00 06:00:00 08:00:00"),
        ("*/30 * * * *", "Australia/Lord_Howe", "2026-04-05", "00:00:00 00:30:00 01:00:00 01:30:00 01:30:00' 02:00:00"),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", "02:30:00"),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-05", "01:45:00"),
        ("30 0 * * *", "America/Santiago", "2026-09-06", "01:00:00"),
        ("0 0 * * *", "America/Santiago", "2026-09-06", "01:00:00"),
        ("30 23 * * *", "America/Santiago", "2026-04-04", "23:30:00"),
        ("30 2 * * *", "Africa/Casablanca", "2026-02-15", "02:30:00"),
        ("30 2 * * *", "Africa/Casablanca", "2026-03-22", "03:00:00"),
    ],
)
def test_a_change_of_the_clocks_is_met_as_told(text: str, zone: str, day: str, expected: str) -> None:
    wanted = expected.split()
    assert local_ticks(text, zone, day)[: len(wanted)] == wanted
    if Cron.parse(text).is_interval is False:
        assert len(local_ticks(text, zone, day)) == len(wanted)


def test_a_day_left_out_ticks_once_at_the_start_of_the_next() -> None:
    found = local_ticks("0 3,9 * * *", "Pacific/Apia", "2011-12-29", days=3)
    assert found == ["29 03:00:00", "29 09:00:00", "31 00:00:00", "31 03:00:00", "31 09:00:00"]


def test_an_interval_ignores_a_day_left_out() -> None:
    found = local_ticks("0 */12 * * *", "Pacific/Apia", "2011-12-29", days=3)
    assert found == ["29 00:00:00", "29 12:00:00", "31 00:00:00", "31 12:00:00"]


def test_an_interval_runs_by_real_time_through_an_overlap_and_a_gap() -> None:
    zone, cron = ZoneInfo("America/New_York"), Cron.parse("*/10 * * * *")
    for start in (datetime(2026, 11, 1, 4, tzinfo=UTC), datetime(2026, 3, 8, 4, tzinfo=UTC)):
        tick = start
        for _ in range(36):
            following = cron.next(tick, zone)
            assert following == tick + timedelta(minutes=10)
            tick = following


@settings(max_examples=examples(80))
@given(
    st.sampled_from(["UTC", *sorted({zone for zone, _ in CHANGES})]),
    expressions(seconds=True),
    st.datetimes(datetime(1902, 1, 1), datetime(2900, 1, 1)),  # noqa: DTZ001
)
def test_previous_undoes_next_anywhere(zone: str, drawn: Drawn, at: datetime) -> None:
    place, cron, instant = ZoneInfo(zone), Cron.parse(drawn.text), at.replace(tzinfo=UTC)
    later, earlier = cron.next(instant, place), cron.previous(instant, place)
    assert later is not None
    assert earlier is not None
    assert earlier < instant < later
    assert cron.previous(later + SECOND / 2, place) == later
    assert cron.next(earlier - SECOND / 2, place) == earlier
    between = cron.next(earlier, place)
    assert between in (instant, later)
    assert cron.previous(later, place) in (instant, earlier)


def test_a_zone_is_asked_a_bounded_number_of_times() -> None:
    class Counting(ZoneInfo):
        asked = 0

        def utcoffset(self, dt: datetime | None) -> timedelta | None:
            Counting.asked += 1
            return super().utcoffset(dt)

        def fromutc(self, dt: datetime) -> datetime:
            Counting.asked += 1
            return super().fromutc(dt)

    zone = Counting.no_cache("America/New_York")
    for text in ("* * * * * *", "* * 1 * * *", "* * 2 * * *", "0 0 29 2 *"):
        cron = Cron.parse(text)
        for minute in range(0, 600, 7):
            for day in (datetime(2026, 3, 8, 3, tzinfo=UTC), datetime(2026, 11, 1, 3, tzinfo=UTC)):
                for ask in (cron.next, cron.previous):
                    Counting.asked = 0
                    ask(day + minute * MINUTE, zone)
                    assert 0 < Counting.asked < 100
