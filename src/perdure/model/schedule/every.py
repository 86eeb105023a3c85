"""An interval, `@every 10s`: ticks at equal distances of real time from an anchor, the schedule's creation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from perdure.errors import BadCron, BadDuration
from perdure.model.cron.parser import words_of
from perdure.model.cron.pattern import LAST_YEAR
from perdure.model.cron.wall_clock import aware
from perdure.text.duration import format_duration, parse_duration
from perdure.text.shown import shown

SHORTEST = timedelta(seconds=1)
"""A schedule ticks once a second at most, by cron and by interval alike."""

_LATEST = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)


class Every(msgspec.Struct, frozen=True, kw_only=True):
    """Ticks at anchor + period, anchor + 2 × period, and so on; none at the anchor itself or before it.

    Takes the same names as `Cron`, so that one call serves both: `rule.next(after, zone=zone, anchor=anchor)`. An
    interval makes no use of the zone: it runs by real time, whatever the clocks do.
    """

    text: str
    period: timedelta

    @classmethod
    def parse(cls, text: str) -> Every:
        """The interval that `@every 10s` or `@every 1h30m` spells."""
        words = words_of(text)
        if words[0].lower() != "@every":
            raise BadCron(f"{shown(text)} is not an interval.", "Write it like `@every 10s` or `@every 1h30m`.")
        try:
            period = parse_duration(" ".join(words[1:]), what="the time after @every")
        except BadDuration as bad:
            raise BadCron(f"The interval {shown(text)} cannot be read: {bad.message}", bad.hint) from bad
        if period < SHORTEST:
            raise BadCron(
                f"The interval {shown(text)} is shorter than a second.", "A schedule ticks once a second at most."
            )
        return cls(text=" ".join(words), period=period)

    def next(self, after: datetime, anchor: datetime, zone: tzinfo | None = None) -> datetime | None:
        """The first tick strictly after an instant, in UTC; None past the year 2999, where ticks end."""
        start = aware(anchor)
        passed = max(aware(after) - start, timedelta(0))
        if passed + self.period > _LATEST - start:
            return None
        tick = start + (passed // self.period + 1) * self.period
        return tick if tick < _LATEST else None

    def previous(self, before: datetime, anchor: datetime, zone: tzinfo | None = None) -> datetime | None:
        """The last tick strictly before an instant, in UTC; None if there was none since the anchor."""
        start = aware(anchor)
        passed = min(aware(before), _LATEST) - start
        count = -(-passed // self.period) - 1
        return start + count * self.period if count >= 1 else None

    def describe(self) -> str:
        """The interval in plain English, such as `every 1h30m`."""
        return f"every {format_duration(self.period)}"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Every.parse({self.text!r})"
