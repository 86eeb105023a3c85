"""Brings the dead back: a dry run with the exact count, then in chunks, paced by a rate, canaries first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from perdure.admin.operate import CHUNK, Tell
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.admin.selection import Selection, select_dead
from perdure.errors import BadOption
from perdure.store import Store
from perdure.text.duration import LONGEST

Rate = str | float
"""How many jobs in which time: `"50/s"`, `"100/m"`, or a number a second."""

_PERIODS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_RATE = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(?:/\s*(s|m|h|d)[a-z]*)?\s*", re.ASCII)
_AT_ONCE = timedelta(0)
_SLOWEST = timedelta(days=1)


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay did, or in a dry run would do."""

    count: int
    """How many were put back."""
    matching: int
    """How many dead jobs matched when it began."""
    is_dry_run: bool = False

    @property
    def left(self) -> int:
        """How many of the matching ones stay dead: no canaries, or their unique key is busy."""
        return self.matching - self.count


@stepped
def replay(
    store: Store,
    ids: Sequence[str],
    filters: Mapping[str, Any],
    *,
    rate: Rate | None = None,
    canary: int | None = None,
    dry_run: bool = False,
) -> Steps[Replayed]:
    """Put dead jobs back by id or filters, or only count them."""
    every = read_rate(rate)
    wanted = _read_canary(canary)
    selection = yield from select_dead(store, ids, filters)
    if dry_run:
        count = selection.count if wanted is None else min(wanted, selection.count)
        return Replayed(count=count, matching=selection.count, is_dry_run=True)
    return (yield from ask(replay_selected(store, selection, every=every, canary=wanted)))


@stepped
def replay_selected(
    store: Store,
    selection: Selection,
    *,
    every: timedelta = _AT_ONCE,
    canary: int | None = None,
    tell: Tell | None = None,
) -> Steps[Replayed]:
    """Put the dead jobs of a selection back, oldest first; `canary` stops after so many."""
    wanted = selection.count if canary is None else min(canary, selection.count)
    # The store spaces the jobs of one call; paced chunks in several calls would all come due side by side.
    chunk = wanted if every else CHUNK
    if every and wanted * every > LONGEST:
        raise BadOption("At this rate the last job would come due in more than a hundred years.", "Raise the rate.")
    done = 0
    while done < wanted:
        count = yield from ask(store.replay(selection.where, min(chunk, wanted - done), every))
        if count == 0:
            break
        done += count
        if tell is not None:
            tell(count)
    return Replayed(count=done, matching=selection.count)


def read_rate(rate: Rate | None) -> timedelta:
    """The time between two jobs at this rate; nothing for no rate."""
    if rate is None:
        return _AT_ONCE
    found = _RATE.fullmatch(str(rate))
    if found is None or isinstance(rate, bool) or float(found[1]) <= 0:
        raise BadOption(f"rate is {str(rate)[:60]!r}, which is no rate.", 'Write it like "50/s", "100/m" or "10/h".')
    every = timedelta(seconds=_PERIODS[found[2] or "s"] / float(found[1]))
    if every > _SLOWEST:
        raise BadOption(f"rate is {str(rate)[:60]!r}, less than one job a day.", "Replay fewer jobs with a canary.")
    return every


def _read_canary(canary: int | None) -> int | None:
    if canary is not None and canary < 1:
        raise BadOption(f"canary is {canary}; it must be at least 1.", "Leave it out to replay all that match.")
    return canary
