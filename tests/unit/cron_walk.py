"""A slow reading of the rules about changes of the clocks: it walks through real time, step by step."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from tests.unit.cron_texts import Drawn


class Walk:
    """The real seconds or minutes of a span, each with what the wall clock shows; nothing here knows of folds."""

    def __init__(self, zone: str, start: datetime, end: datetime, pace: timedelta) -> None:
        self.zone = ZoneInfo(zone)
        self.start, self.end = start, end
        self.instants = [start + pace * number for number in range((end - start) // pace)]
        self.walls = [instant.astimezone(self.zone).replace(tzinfo=None, fold=0) for instant in self.instants]
        self.first_shown = dict(zip(self.walls[::-1], self.instants[::-1], strict=True))
        self.missing = self._missing(pace)

    def _missing(self, pace: timedelta) -> dict[datetime, datetime]:
        """Each wall-clock time that is left out, with the first instant after the gap."""
        found = {}
        for number in range(1, len(self.walls)):
            wall = self.walls[number - 1] + pace
            while wall < self.walls[number]:
                found[wall] = self.instants[number]
                wall += pace
        return found

    def ticks(self, drawn: Drawn) -> list[datetime]:
        """All ticks of the span, by the rules as docs/schedules.md states them."""
        if drawn.is_interval:
            return [at for at, wall in zip(self.instants, self.walls, strict=True) if drawn.matches(wall)]
        shown = {**self.first_shown, **self.missing}
        return sorted({at for wall, at in shown.items() if drawn.matches(wall)})


@cache
def walk_around(zone: str, middle: datetime, reach: timedelta, pace: timedelta) -> Walk:
    """The walk through the time around an instant; kept, as many examples use the same."""
    return Walk(zone, middle - reach, middle + reach, pace)
