"""Two other readers of cron, the oracles, and the table of all cases in which they are known to differ from Perdure.

The property tests of test_cron_others.py leave out exactly what the table describes. Each entry has an example, with
which they check that the entry is still needed and that Perdure's answer follows from the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim
from tests.unit.cron_texts import Drawn, DrawnField

HOUR = timedelta(hours=1)


class Case(NamedTuple):
    """What an oracle is asked: the ticks of an expression in a zone after an instant, in UTC, up to another one."""

    drawn: Drawn
    zone: str
    after: datetime
    until: datetime


class Difference(NamedTuple):
    """A kind of cases in which an oracle differs, and an example of it."""

    name: str
    oracle: Literal["cronsim", "croniter"]
    why: str
    text: str
    zone: str
    after: str
    ours: tuple[str, ...]
    """The ticks that follow `after`, as the wall clock of the zone shows them with its offset."""
    theirs: tuple[str, ...]
    concerns: Callable[[Case], bool]


def cronsim_ticks(text: str, after: datetime, zone: str, count: int) -> list[datetime]:
    """What cronsim finds; it is told the second after which to look, as it knows nothing smaller."""
    local = after.replace(microsecond=0).astimezone(ZoneInfo(zone))
    ticks = CronSim(text, local)
    return [next(ticks).astimezone(UTC) for _ in range(count)]


def croniter_ticks(text: str, after: datetime, zone: str, count: int) -> list[datetime]:
    """What croniter finds in UTC, the only zone in which it is asked here."""
    assert zone == "UTC"
    ticks = croniter(text, after, second_at_beginning=True)
    return [ticks.get_next(datetime) for _ in range(count)]


ORACLES = {"cronsim": cronsim_ticks, "croniter": croniter_ticks}


def is_known_to_differ(oracle: str, case: Case) -> bool:
    return any(difference.oracle == oracle and difference.concerns(case) for difference in KNOWN_DIFFERENCES)


class ClockChange(NamedTuple):
    """A change of a zone's clock: what it shows a minute before, and what it shows then."""

    before: datetime
    after: datetime

    @property
    def shift(self) -> timedelta:
        return (self.after.utcoffset() or timedelta(0)) - (self.before.utcoffset() or timedelta(0))

    @property
    def skips_midnight(self) -> bool:
        """Whether the clock never shows 00:00 of some day; where it skips a whole day, that of the skipped day."""
        first_skipped = self.before.replace(tzinfo=None) + timedelta(minutes=1)
        midnight = datetime.combine(first_skipped - timedelta(microseconds=1), time(0)) + 24 * HOUR
        return first_skipped <= midnight < self.after.replace(tzinfo=None)


def clock_changes(zone: str, start: datetime, end: datetime) -> list[ClockChange]:
    """The changes of a zone's clock between two instants, looked for every quarter of an hour."""
    place, day, quarter = ZoneInfo(zone), 24 * HOUR, HOUR / 4
    at = start.replace(minute=0, second=0, microsecond=0)
    found, shown = [], at.astimezone(place)
    while at < end:
        # Clocks are rarely changed: only a day that ends with another offset is looked at closely.
        at += day if (at + day).astimezone(place).utcoffset() == shown.utcoffset() else quarter
        before, shown = shown, at.astimezone(place)
        if shown.utcoffset() != before.utcoffset():
            found.append(ClockChange((at - timedelta(minutes=1)).astimezone(place), shown))
    return found


def clock_changes_of(zone: str) -> list[datetime]:
    """The instants from 2011 to 2016 at which a zone's clock is changed."""
    span = datetime(2011, 1, 1, tzinfo=UTC), datetime(2017, 1, 1, tzinfo=UTC)
    return [change.after.astimezone(UTC) for change in clock_changes(zone, *span)]


def changes_near(case: Case) -> list[ClockChange]:
    return clock_changes(case.zone, case.after - 24 * HOUR, case.until + 24 * HOUR) if is_zoned(case) else []


def meets_part_of_an_hour(case: Case) -> bool:
    return case.drawn.is_interval and any(change.shift % HOUR for change in changes_near(case))


def meets_missing_midnight(case: Case) -> bool:
    return case.drawn.is_interval and any(change.skips_midnight for change in changes_near(case))


def starts_in_overlap(case: Case) -> bool:
    local = case.after.astimezone(ZoneInfo(case.zone))
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


def is_zoned(case: Case) -> bool:
    return case.zone != "UTC"


def parts_of(*fields: DrawnField) -> list[str]:
    return [part for field in fields for part in field.text.split(",")]


def is_point(part: str) -> bool:
    """Whether it is a range of one value, such as `5-5`."""
    first, dash, last = part.partition("/")[0].partition("-")
    return bool(dash) and first == last


def wraps_with_step(part: str) -> bool:
    span, slash, _ = part.partition("/")
    first, dash, last = span.partition("-")
    return bool(slash and dash) and int(last) < int(first)


def counts_from_the_highest(drawn: Drawn) -> bool:
    """Whether a step begins at the highest value of its field, such as `59/1`."""
    highest = zip(drawn.fields, (59, 59, 23, 31, 12, 6)[-len(drawn.fields) :], strict=True)
    return any(part.startswith(f"{high}/") for field, high in highest for part in parts_of(field))


KNOWN_DIFFERENCES = (
    Difference(
        name="the clock is put forward by half an hour",
        oracle="cronsim",
        why="It looks for a matching hour in steps of 3600 real seconds from a full hour, and for a single minute in "
        "one step. A change by half an hour leaves it in the middle of an hour, whose minute 0 it has passed.",
        text="0 */20 * * *",
        zone="Australia/Lord_Howe",
        after="2009-10-03T10:48",
        ours=("2009-10-04T00:00:00+10:30", "2009-10-04T20:00:00+11:00"),
        theirs=("2009-10-04T00:00:00+10:30", "2009-10-05T00:00:00+11:00"),
        concerns=meets_part_of_an_hour,
    ),
    Difference(
        name="the clock is put back by half an hour",
        oracle="cronsim",
        why="As above: it steps from 02:30 to 03:30, and never looks at 03:00.",
        text="0 */3 1 4 0",
        zone="Australia/Lord_Howe",
        after="2011-04-02T14:00",
        ours=("2011-04-03T03:00:00+10:30", "2011-04-03T06:00:00+10:30"),
        theirs=("2011-04-03T06:00:00+10:30", "2011-04-03T09:00:00+10:30"),
        concerns=meets_part_of_an_hour,
    ),
    Difference(
        name="midnight is missing",
        oracle="cronsim",
        why="It goes to the next matching day at 00:00 without looking whether the clock shows it there. Where it does "
        "not, an interval must not tick for it, and cronsim ticks at the end of the gap.",
        text="0 */9 * * 0",
        zone="America/Santiago",
        after="2026-09-05T12:00",
        ours=("2026-09-06T09:00:00-03:00", "2026-09-06T18:00:00-03:00"),
        theirs=("2026-09-06T01:00:00-03:00", "2026-09-06T09:00:00-03:00"),
        concerns=meets_missing_midnight,
    ),
    Difference(
        name="the search starts in an overlap",
        oracle="cronsim",
        why="It forgets whether the clock shows the time for the first or the second time: its tick is in the past.",
        text="30 1 * * *",
        zone="America/New_York",
        after="2026-11-01T06:15",
        ours=("2026-11-02T01:30:00-05:00",),
        theirs=("2026-11-01T01:30:00-04:00",),
        concerns=starts_in_overlap,
    ),
    Difference(
        name="a star in the minute beside fixed hours",
        oracle="cronsim",
        why="It takes a star in the minute for an interval too; here the hour decides, as docs/schedules.md says.",
        text="*/30 2 * * *",
        zone="America/New_York",
        after="2026-03-08T06:30",
        ours=("2026-03-08T03:00:00-04:00",),
        theirs=("2026-03-09T02:00:00-04:00",),
        concerns=lambda case: is_zoned(case) and case.drawn.fields[-5].is_open and not case.drawn.is_interval,
    ),
    Difference(
        name="daily times with seconds",
        oracle="cronsim",
        why="It takes every expression of six fields for an interval.",
        text="0 30 2 * * *",
        zone="America/New_York",
        after="2026-03-08T06:30",
        ours=("2026-03-08T03:00:00-04:00",),
        theirs=("2026-03-09T02:30:00-04:00",),
        concerns=lambda case: is_zoned(case) and len(case.drawn.fields) == 6 and not case.drawn.is_interval,
    ),
    Difference(
        name="a step from a weekday on",
        oracle="cronsim",
        why="It counts on to 7, a second name of Sunday; here the week ends with Saturday and has no day twice.",
        text="0 0 * * 1/2",
        zone="UTC",
        after="2026-01-01T00:00",
        ours=("2026-01-02T00:00:00+00:00", "2026-01-05T00:00:00+00:00"),
        theirs=("2026-01-02T00:00:00+00:00", "2026-01-04T00:00:00+00:00"),
        concerns=lambda case: any(
            "/" in part and "-" not in part and part[0] != "*" for part in parts_of(case.drawn.fields[-1])
        ),
    ),
    Difference(
        name="a range of one value with a step",
        oracle="cronsim",
        why="It reads `5-5/20` as `5/20`, which goes on to the end of the field; the range ends at 5.",
        text="5-5/20 * * * *",
        zone="UTC",
        after="2026-01-01T00:00",
        ours=("2026-01-01T00:05:00+00:00", "2026-01-01T01:05:00+00:00"),
        theirs=("2026-01-01T00:05:00+00:00", "2026-01-01T00:25:00+00:00"),
        concerns=lambda case: any("/" in part and is_point(part) for part in parts_of(*case.drawn.fields)),
    ),
    Difference(
        name="a star with a step beside another day field",
        oracle="croniter",
        why="In Vixie's cron a day must match both fields if one begins with a star; in croniter only if it is a star.",
        text="0 0 0 */2 * 1",
        zone="UTC",
        after="2026-01-01T00:00",
        ours=("2026-01-05T00:00:00+00:00", "2026-01-19T00:00:00+00:00", "2026-02-09T00:00:00+00:00"),
        theirs=("2026-01-03T00:00:00+00:00", "2026-01-05T00:00:00+00:00", "2026-01-07T00:00:00+00:00"),
        concerns=lambda case: (
            (case.drawn.fields[-3].is_open or case.drawn.fields[-1].is_open)
            and "*" not in (case.drawn.fields[-3].text, case.drawn.fields[-1].text)
        ),
    ),
    Difference(
        name="a range that wraps, with a step",
        oracle="croniter",
        why="The step goes on across the end of the field here; croniter starts anew or takes the month for shorter.",
        text="0 0 0 25-5/3 * *",
        zone="UTC",
        after="2026-01-01T00:00",
        ours=("2026-01-03T00:00:00+00:00", "2026-01-25T00:00:00+00:00"),
        theirs=("2026-01-04T00:00:00+00:00", "2026-01-25T00:00:00+00:00"),
        concerns=lambda case: any(wraps_with_step(part) for part in parts_of(*case.drawn.fields)),
    ),
    Difference(
        name="a range of one value",
        oracle="croniter",
        why="It reads `59-59` as a range that wraps round the whole field.",
        text="0 59-59 * * * *",
        zone="UTC",
        after="2026-01-01T00:00",
        ours=("2026-01-01T00:59:00+00:00", "2026-01-01T01:59:00+00:00"),
        theirs=("2026-01-01T00:01:00+00:00", "2026-01-01T00:02:00+00:00"),
        concerns=lambda case: any(is_point(part) for part in parts_of(*case.drawn.fields)),
    ),
    Difference(
        name="a step from the highest value on",
        oracle="croniter",
        why="It reads `59/1` as `59-59/1`, and that as above.",
        text="0 59/1 * * * *",
        zone="UTC",
        after="2026-01-01T00:00",
        ours=("2026-01-01T00:59:00+00:00", "2026-01-01T01:59:00+00:00"),
        theirs=("2026-01-01T00:01:00+00:00", "2026-01-01T00:02:00+00:00"),
        concerns=lambda case: counts_from_the_highest(case.drawn),
    ),
)
