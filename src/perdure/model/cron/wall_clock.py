"""How a zone's wall clock runs beside real time: its gaps, which are never shown, and its overlaps, shown twice.

Wall-clock times here are datetimes without a zone and in whole seconds; instants are UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from perdure.errors import BadOption

_SECOND = timedelta(seconds=1)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The moment at which a zone's offset from UTC changes, and the wall-clock times that are missing or come twice."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def is_gap(self) -> bool:
        """Whether the clock is put forward; else it is put back."""
        return self.after > self.before

    @property
    def start(self) -> datetime:
        """The first wall-clock time that is missing or comes twice."""
        return self.at.replace(tzinfo=None) + min(self.before, self.after)

    @property
    def end(self) -> datetime:
        """The first wall-clock time behind them."""
        return self.at.replace(tzinfo=None) + max(self.before, self.after)


def aware(instant: datetime) -> datetime:
    """The instant in UTC; refused if it has no zone."""
    if instant.tzinfo is UTC:
        return instant
    if instant.utcoffset() is None:
        raise BadOption(f"The time {instant} has no zone.", "Give an aware datetime, such as `datetime.now(UTC)`.")
    return instant.astimezone(UTC)


def change_around(wall: datetime, zone: tzinfo) -> Change | None:
    """The change that makes this wall-clock time missing or ambiguous; None for an ordinary one."""
    before, after = _offset(wall.replace(tzinfo=zone)), _offset(wall.replace(tzinfo=zone, fold=1))
    if before == after:
        return None
    low, high = wall - max(before, after), wall - min(before, after)
    while high - low > _SECOND:
        middle = low + (high - low) // 2 // _SECOND * _SECOND
        if _offset(zone.fromutc(middle.replace(tzinfo=zone))) == before:
            low = middle
        else:
            high = middle
    return Change(at=high.replace(tzinfo=UTC), before=before, after=after)


def instant_of(wall: datetime, zone: tzinfo) -> datetime:
    """The instant of a wall-clock time; the first of two if it is ambiguous."""
    return (wall - _offset(wall.replace(tzinfo=zone))).replace(tzinfo=UTC)


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta(0)
