"""What cron expressions mean: their ticks in UTC, their text, their bounds, and intervals beside them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from perdure.errors import BadCron, BadOption
from perdure.model.cron import pattern as cron_pattern
from perdure.model.cron.expression import Cron
from perdure.model.schedule.every import Every
from perdure.model.schedule.rule import parse_rule

START = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday


def ticks(text: str, after: datetime = START) -> Iterator[datetime]:
    cron = Cron.parse(text)
    tick = cron.next(after, UTC)
    while tick is not None:
        yield tick
        tick = cron.next(tick, UTC)


def shown(text: str, form: str, count: int, after: datetime = START) -> list[str]:
    found = ticks(text, after)
    return [format(next(found), form) for _ in range(count)]


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("* * * * *", "%H:%M:%S", "00:01:00 00:02:00 00:03:00"),
        ("* * * * * *", "%H:%M:%S", "00:00:01 00:00:02 00:00:03"),
        ("*/20 * * * * *", "%H:%M:%S", "00:00:20 00:00:40 00:01:00"),
        ("*/7 * * * *", "%H:%M", "00:07 00:14 00:21 00:28 00:35 00:42 00:49 00:56 01:00 01:07"),
        ("5/15 * * * *", "%H:%M", "00:05 00:20 00:35 00:50 01:05"),
        ("10-40/15 * * * *", "%H:%M", "00:10 00:25 00:40 01:10"),
        ("0,30,5-6 3 * * *", "%d %H:%M", "01 03:00|01 03:05|01 03:06|01 03:30|02 03:00"),
        ("58-1 12 * * *", "%d %H:%M", "01 12:00|01 12:01|01 12:58|01 12:59|02 12:00"),
        ("0 22-2 * * *", "%d %H", "01 01|01 02|01 22|01 23|02 00"),
        ("0 0 30 * *", "%m-%d", "01-30 03-30 04-30 05-30"),
        ("0 0 29 2 *", "%Y-%m-%d", "2028-02-29 2032-02-29 2036-02-29"),
        ("0 0 L * *", "%m-%d", "01-31 02-28 03-31 04-30"),
        ("0 0 L-3 * *", "%m-%d", "01-28 02-25 03-28 04-27"),
        ("0 0 L-30 * *", "%m-%d", "03-01 05-01 07-01 08-01"),
        ("0 0 LW * *", "%m-%d", "01-30 02-27 03-31 04-30 05-29"),
        ("0 0 15W * *", "%m-%d", "01-15 02-16 03-16 04-15 05-15"),
        ("0 0 1W 8,11 *", "%m-%d", "08-03 11-02"),
        ("0 0 31W 1,5 *", "%m-%d", "01-30 05-29"),
        ("0 0 31W * *", "%m-%d", "01-30 03-31 05-29 07-31"),
        ("0 0 15,L 2 *", "%m-%d", "02-15 02-28"),
        ("0 0 25-2 * *", "%m-%d", "01-02 01-25 01-26 01-27 01-28 01-29 01-30 01-31 02-01 02-02 02-25"),
        ("0 0 1 nov-Feb *", "%Y-%m", "2026-02 2026-11 2026-12 2027-01"),
        ("0 0 1 JAN,jul/2 *", "%Y-%m", "2026-07 2026-09 2026-11 2027-01"),
        ("0 0 * * 0", "%a-%d", "Sun-04 Sun-11"),
        ("0 0 * * 7", "%a-%d", "Sun-04 Sun-11"),
        ("0 0 * * 5-7", "%a-%d", "Fri-02 Sat-03 Sun-04 Fri-09"),
        ("0 0 * * fri-MON", "%a-%d", "Fri-02 Sat-03 Sun-04 Mon-05 Fri-09"),
        ("0 0 * * SAT-SUN", "%a-%d", "Sat-03 Sun-04 Sat-10"),
        ("0 0 * * 7-1", "%a-%d", "Sun-04 Mon-05 Sun-11"),
        ("0 0 * * 0-7", "%d", "02 03 04 05 06 07 08 09"),
        ("0 0 * * MON/2", "%a-%d", "Fri-02 Mon-05 Wed-07 Fri-09"),
        ("0 0 * * 7/3", "%a-%d", "Sat-03 Sun-04 Wed-07 Sat-10"),
        ("0 0 * * 5L", "%m-%d", "01-30 02-27 03-27 04-24"),
        ("0 0 * * 7L", "%m-%d", "01-25 02-22 03-29"),
        ("0 0 * * fril", "%m-%d", "01-30 02-27 03-27 04-24"),
        ("0 0 * * FRI#2", "%m-%d", "01-09 02-13 03-13"),
        ("0 0 * * 5#5", "%m-%d", "01-30 05-29 07-31"),
        ("0 0 * * 0#1,7#3", "%m-%d", "01-04 01-18 02-01 02-15"),
        ("0 0 ? * 1", "%m-%d", "01-05 01-12"),
        ("0 0 1 * ?", "%m-%d", "02-01 03-01"),
        ("@yearly", "%Y-%m-%d %H:%M:%S", "2027-01-01 00:00:00|2028-01-01 00:00:00"),
        ("@annually", "%Y-%m-%d", "2027-01-01 2028-01-01"),
        ("@monthly", "%Y-%m-%d", "2026-02-01 2026-03-01"),
        ("@weekly", "%a-%d", "Sun-04 Sun-11"),
        ("@daily", "%m-%d", "01-02 01-03"),
        ("@Midnight", "%m-%d", "01-02 01-03"),
        ("@hourly", "%H:%M", "01:00 02:00"),
        ("@minutely", "%H:%M", "00:01 00:02"),
    ],
)
def test_the_expression_ticks_when_it_says(text: str, form: str, expected: str) -> None:
    wanted = expected.split("|") if "|" in expected else expected.split()
    assert shown(text, form, len(wanted)) == wanted


def test_a_day_and_a_weekday_both_restricted_match_either() -> None:
    assert shown("0 0 13 * FRI", "%a-%d", 7) == ["Fri-02", "Fri-09", "Tue-13", "Fri-16", "Fri-23", "Fri-30", "Fri-06"]


@pytest.mark.parametrize("text", ["0 0 */2 * MON", "0 0 1-31/2 * */1", "0 0 */2 * MON-MON"])
def test_a_day_or_weekday_that_begins_with_a_star_must_match_together_with_the_other(text: str) -> None:
    odd = {tick.day % 2 for tick, _ in zip(ticks(text), range(50), strict=False)}
    assert odd == {1}


def test_a_star_with_a_step_is_met_by_the_weekday() -> None:
    assert shown("0 0 */2 * MON", "%a-%m-%d", 4) == ["Mon-01-05", "Mon-01-19", "Mon-02-09", "Mon-02-23"]


def test_an_impossible_day_beside_a_weekday_leaves_the_weekday() -> None:
    assert shown("0 0 30 2 MON", "%m-%d", 4) == ["02-02", "02-09", "02-16", "02-23"]


def test_next_is_strictly_after_and_previous_strictly_before() -> None:
    cron = Cron.parse("0 3 * * *")
    tick = datetime(2026, 1, 2, 3, tzinfo=UTC)
    moment = timedelta(microseconds=1)
    assert cron.next(tick - moment, UTC) == tick
    assert cron.next(tick, UTC) == tick + timedelta(days=1)
    assert cron.previous(tick + moment, UTC) == tick
    assert cron.previous(tick, UTC) == tick - timedelta(days=1)


def test_other_zones_are_converted_and_answers_are_utc() -> None:
    after = datetime(2026, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5)))
    tick = Cron.parse("@hourly").next(after, timezone(timedelta(minutes=20)))
    assert (tick, tick and tick.tzinfo) == (datetime(2026, 1, 1, 0, 40, tzinfo=UTC), UTC)


def test_a_time_without_a_zone_is_refused() -> None:
    naive = START.replace(tzinfo=None)
    for ask in (Cron.parse("@daily").next, Cron.parse("@daily").previous):
        with pytest.raises(BadOption, match="no zone"):
            ask(naive, UTC)


def test_ticks_begin_and_end_with_the_known_years() -> None:
    cron = Cron.parse("@yearly")
    first, last = datetime(1900, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
    assert (cron.next(datetime.min.replace(tzinfo=UTC), UTC), cron.previous(first, UTC)) == (first, None)
    assert (cron.previous(datetime.max.replace(tzinfo=UTC), UTC), cron.next(last, UTC)) == (last, None)


@pytest.mark.parametrize("text", ["0 0 29 2 */7", "0 0 * 2 SUN#5"])
def test_the_rarest_day_is_found_across_a_century_and_both_ways(text: str) -> None:
    cron = Cron.parse(text)
    days = [datetime(year, 2, 29, tzinfo=UTC) for year in (2060, 2088, 2128)]
    assert [cron.next(day, UTC) for day in days[:2]] == days[1:]
    assert [cron.previous(day, UTC) for day in days[1:]] == days[:2]


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("* * * * * *", 1),
        ("0 3 * * *", 3),
        ("0 0 31 * *", 4),
        ("0 0 1 1 *", 2),
        ("0 0 29 2 */7", 42),
        ("0 0 L-30 * *", 4),
    ],
)
def test_a_search_looks_at_a_bounded_number_of_months(text: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    days_of = cron_pattern.days_of

    def counting(*place: object) -> int:
        looked.append(1)
        return days_of(*place)  # type: ignore[arg-type]

    monkeypatch.setattr(cron_pattern, "days_of", counting)
    cron = Cron.parse(text)
    for month in range(1, 13):
        for year in (2026, 2088, 2099):
            for ask in (cron.next, cron.previous):
                looked.clear()
                assert ask(datetime(year, month, 28, 12, 30, 30, tzinfo=UTC), UTC) is not None
                assert 1 <= len(looked) <= most


def test_the_text_is_kept_with_single_spaces() -> None:
    cron = Cron.parse("  0\t0   3 * *\n mon ")
    assert (str(cron), cron.text, repr(cron)) == ("0 0 3 * * mon",) * 2 + ("Cron.parse('0 0 3 * * mon')",)


def test_expressions_written_alike_are_equal_and_hash_alike() -> None:
    one, same, other = Cron.parse("0 3 * * *"), Cron.parse(" 0  3 * * *"), Cron.parse("0 4 * * *")
    assert {one, same, other} == {one, other}
    assert one == pickle.loads(pickle.dumps(one))


def test_an_expression_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Cron.parse("@daily").text = "@hourly"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("@every 10s", timedelta(seconds=10)),
        (" @EVERY  1h 30m", timedelta(minutes=90)),
        ("@every 1.5s", timedelta(seconds=1.5)),
    ],
)
def test_an_interval_is_read_with_its_period(text: str, period: timedelta) -> None:
    rule = parse_rule(text)
    assert isinstance(rule, Every)
    assert rule.period == period
    assert str(rule) == " ".join(text.split())
    assert rule == parse_rule(str(rule))


def test_an_interval_ticks_from_its_anchor_on() -> None:
    every = Every.parse("@every 10s")
    anchor = START + timedelta(seconds=3)

    def at(seconds: float) -> datetime:
        return START + timedelta(seconds=seconds)

    assert [every.next(at(s), anchor) for s in (-1000, 0, 3, 12.9, 13, 13.1)] == [at(13)] * 4 + [at(23)] * 2
    assert [every.previous(at(s), anchor) for s in (-1000, 3, 13, 13.1, 23, 23.5)] == [None] * 3 + [at(13)] * 2 + [
        at(23)
    ]


def test_an_interval_ends_with_the_known_years() -> None:
    every = Every.parse("@every 100d")
    last = every.previous(datetime.max.replace(tzinfo=UTC), START)
    assert last is not None
    assert last.year == 2999
    assert every.next(last, START) is None
    assert every.next(datetime.max.replace(tzinfo=UTC), START) is None


@pytest.mark.parametrize("text", ["@every 1h", "@hourly", "0 * * * *"])
def test_one_call_asks_either_kind_of_rule(text: str) -> None:
    rule = parse_rule(text)
    tick = rule.next(START, zone=UTC, anchor=START)
    assert tick == START + timedelta(hours=1)
    assert rule.previous(START + timedelta(hours=1, seconds=1), zone=UTC, anchor=START) == tick


def test_an_interval_is_no_cron_expression_and_the_other_way_round() -> None:
    with pytest.raises(BadCron, match="parse_rule"):
        Cron.parse("@every 10s")
    with pytest.raises(BadCron, match="not an interval"):
        Every.parse("@daily")
