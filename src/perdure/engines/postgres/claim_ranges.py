"""Decides which ranges of the index of ready jobs a claim reads while old index entries make claims slow.

PostgreSQL keeps the index entry of a claimed job for as long as any transaction holds a snapshot from before the claim.
A claim that reads the index from its beginning passes all of these entries. While that is measured to be slow, claims
of a queue begin where earlier claims of this process ended, for each lane and priority. That is correct only for jobs
that take their place in the index in order, so two things are added:

- The late range begins some way before the place that was reached: `NEAR_JOBS` jobs or `NEAR_SECONDS` seconds.
- The part before it is swept: slice by slice, each as the early range of some claim, so that a claim never becomes much
  longer. A sweep of all slices takes a bounded share of the time. Slices that may hold a job that came late are swept
  first: the caller says so (`moved_back`), or a transaction has ended that was open when the slice was last read. Only
  such a transaction can hold rows, or locks on rows, that a claim could not see.

No process tells another what it has reached: each one measures and learns for itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from perdure.model.state import Lane

Position = tuple[int, str]
"""A place in the order of one lane and priority: run_at in microseconds, and the job's id."""
Positions = list[Position]
"""One position for each lane and priority, in the order of LANES, from the highest priority to the lowest."""

LANES: tuple[Lane, ...] = ("fresh", "retry")
HIGHEST, LOWEST = 100, -100
WIDTH = HIGHEST - LOWEST + 1
FIRST_ID = "00000000-0000-0000-0000-000000000000"
START: Position = (-(2**63), FIRST_ID)

SLOW = 5_000
SLOW_PER_JOB = 10
"""Finding the jobs of a claim is slow if it takes more microseconds than this, plus this for each job."""
CONFIRMED = 3
"""So many reads from the beginning in a row must be slow: a single one may be the fault of a busy machine."""
NEAR_JOBS = 5000
NEAR_SECONDS = 0.5
"""The late range begins where claims were at least so many jobs, or so many seconds, before the last claim."""
MARKS = 256
"""The most slices of a queue. When there are more, each two become one, and later ones are made twice as long."""
FIRST_SPAN = 1
"""The number of slices that are swept at first; what they take decides how many it is later."""
CHEAP, DEAR = 10_000, 40_000
"""The microseconds that a slice should take: below, the next one is longer; above, shorter."""
PAUSE, URGENT_PAUSE = 20.0, 4.0
"""After a slice, sweeping rests for this many times as long as the slice took, so that it takes 5 % of the time; 20 %
where jobs are known to have come late."""
FIRST_SPLIT = 60_000_000
"""How many microseconds before its end a slice without a beginning is split; twice as many at the next split."""
MOST_TRANSACTIONS = 1000
"""The most open transactions that are remembered at a time."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Which ranges one claim reads."""

    late: Positions
    early: tuple[Positions, Positions] | None = None
    """From where to below where; the late range comes after it."""
    epoch: float
    """The epoch of the late range."""
    is_full: bool = False
    is_sweep: bool = False
    is_urgent: bool = False
    """Whether the sweep looks for jobs that are known to have come late; others go round all slices."""
    until: float | None = None
    """The epoch of the mark where a sweep ends; None: it goes on to the late range."""

    def text(self) -> str:
        """The ranges as fetch_ranges.sql takes them; neighbours that are alike are one range."""
        rows: list[dict[str, object]] = []
        before: object = None
        for place, late in enumerate(self.late):
            lane, priority = LANES[place // WIDTH], HIGHEST - place % WIDTH
            early = None if self.early is None else (self.early[0][place], min(self.early[1][place], late))
            if early is not None and early[0] >= early[1]:
                early = None
            if before == (lane, early, late):
                rows[-1]["low"] = priority
                continue
            before = (lane, early, late)
            row: dict[str, object] = {"lane": lane, "high": priority, "low": priority}
            row["late_at"], row["late_id"] = late
            if early is not None:
                (row["early_at"], row["early_id"]), (row["until_at"], row["until_id"]) = early
            rows.append(row)
        return msgspec.json.encode(rows).decode()


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim found in its ranges."""

    jobs: Sequence[tuple[str, int, Position]]
    """Lane, priority and position of each job claimed."""
    are_done: tuple[bool, bool]
    """For each lane, whether its ranges were read to their end."""
    now: int
    took: int
    snapshot: str
    """What PG_CURRENT_SNAPSHOT() gives: the first and the next transaction id, and the open ones between."""


class _Mark(msgspec.Struct, frozen=True):
    """Where a slice begins."""

    epoch: float
    positions: Positions
    latest: int
    """The latest run_at of its positions."""


class QueueRanges:
    """What this process knows of the ready jobs of one queue whose claims are slow."""

    def __init__(self) -> None:
        start = [START] * (len(LANES) * WIDTH)
        self._slow_reads = self._quick_reads = 0
        self._reached = list(start)
        # The late range begins at _near. The next one is _newer, when enough jobs or seconds have passed since it.
        self._near, self._newer = start, start
        self._epoch = 0.0
        self._newer_since = 0.0
        self._taken = 0
        self._marks = [_Mark(0.0, start, START[0])]
        self._marked_since = 0.0
        self._taken_unmarked = 0
        self._stride = 1
        self._split_by = FIRST_SPLIT
        self._near_took = 0.0
        self._span = FIRST_SPAN
        # A sweep ends where the late range began when the sweep started. That range moves on with every claim: a sweep
        # that followed it might never come to its end.
        self._cursor = self._round_end = 0.0
        self._urgent: float | None = None
        self._urgent_end = 0.0
        self._sweeps: dict[bool, Reading | None] = {False: None, True: None}
        self._was_urgent = False
        self._rests_until = self._urgent_rests_until = 0.0
        self._open: dict[int, float] = {}
        """Open transactions, each with the epoch in which it was first seen."""

    @property
    def is_bounded(self) -> bool:
        """Whether claims begin where earlier ones ended; before that, they read from the beginning and measure."""
        return self._slow_reads >= CONFIRMED

    def next(self, at: float) -> Reading:
        """What the next claim is to read, at this moment of a clock that does not jump."""
        if not self.is_bounded:
            return Reading(late=self._marks[0].positions, epoch=0.0, is_full=True)
        is_round_due = at >= self._rests_until
        is_urgent = self._urgent is not None and at >= self._urgent_rests_until
        if not is_urgent and not is_round_due:
            return Reading(late=self._near, epoch=self._epoch)
        # Where both are due they take turns: there may always be something urgent.
        is_urgent = is_urgent and not (is_round_due and self._was_urgent)
        sweep = self._sweeps[is_urgent]
        if sweep is None:
            sweep = self._sweeps[is_urgent] = self._next_sweep(is_urgent=is_urgent)
        return sweep if sweep.early is None else replace(sweep, late=self._near, epoch=self._epoch)

    def moved_back(self, run_at: int) -> None:
        """Jobs from this run_at on may have come to places that were passed: sweep those soon."""
        if self.is_bounded and run_at < max(self._near)[0]:
            place = bisect_right(self._marks, run_at, key=lambda mark: mark.latest) - 1
            self._sweep_from(self._marks[max(0, place)].epoch)

    def observe(self, reading: Reading, read: Read, at: float) -> bool:
        """Take in what a claim found; whether claims are still slow."""
        was_bounded = self.is_bounded
        if reading.is_full and not self._count(read):
            return False
        is_swept = self._advance(reading, read)
        self._follow_transactions(reading, read.snapshot)
        if was_bounded:
            if reading.is_sweep:
                self._swept(reading, read.took, at, is_swept)
            else:
                self._near_took += 0.2 * (read.took - self._near_took)
            self._turn(at)
        elif self.is_bounded:
            self._near, self._newer = list(self._reached), list(self._reached)
            self._newer_since = self._marked_since = at
            self._rests_until = at + PAUSE * read.took / 1e6
        return True

    def _count(self, read: Read) -> bool:
        """Count slow and quick reads from the beginning; whether claims still count as slow."""
        limit = SLOW + SLOW_PER_JOB * len(read.jobs)
        if not self.is_bounded:
            self._slow_reads += 1
            return read.took > limit
        self._quick_reads = self._quick_reads + 1 if read.took <= limit // 2 else 0
        return self._quick_reads < CONFIRMED

    def _advance(self, reading: Reading, read: Read) -> bool:
        """Move on to where the claim ended; whether it came to the end of its early range."""
        last: dict[str, tuple[int, Position]] = {}
        for lane, priority, position in read.jobs:
            found = (HIGHEST - priority, position)
            if found > last.get(lane, found[:0]):
                last[lane] = found
        self._taken += len(read.jobs)
        self._taken_unmarked += len(read.jobs)
        is_swept = True
        for number, (lane, is_done) in enumerate(zip(LANES, read.are_done, strict=True)):
            first = number * WIDTH
            offset, position = (WIDTH, START) if is_done else last.get(lane, (0, START))
            place = first + offset
            # Everything of a higher priority than the last job was read to its end.
            for above in range(first, place):
                self._reached[above] = max(self._reached[above], (read.now, FIRST_ID))
                if reading.early is not None:
                    reading.early[0][above] = reading.early[1][above]
            if is_done or lane not in last:
                continue
            if reading.early is not None and position < reading.early[1][place]:
                reading.early[0][place] = position
                is_swept = False
            else:
                # What is behind the last job is yet to be claimed, even where an earlier claim had found nothing.
                self._reached[place] = position
                for later in (self._near, self._newer):
                    later[place] = min(later[place], position)
        return is_swept

    def _follow_transactions(self, reading: Reading, snapshot: str) -> None:
        """Sweep what transactions that have ended may have left before the late range."""
        running = {int(number) for number in snapshot.rpartition(":")[2].split(",") if number}
        for number in self._open.keys() - running:
            epoch = self._open.pop(number)
            if epoch < self._epoch:
                self._sweep_from(epoch)
        for number in running - self._open.keys():
            if len(self._open) < MOST_TRANSACTIONS:
                self._open[number] = reading.epoch

    def _next_sweep(self, *, is_urgent: bool) -> Reading:
        if not is_urgent and self._cursor == 0.0:
            self._round_end = self._epoch
        first = self._place_of(self._urgent or 0.0 if is_urgent else self._cursor)
        begin, until = self._marks[first].positions, first + self._span
        if until < len(self._marks):
            end = self._marks[until]
            sweep = Reading(late=self._near, epoch=self._epoch, is_sweep=True, is_urgent=is_urgent, until=end.epoch)
            return replace(sweep, early=(list(begin), end.positions))
        # The slice ends where the late range begins: together they are one range.
        return Reading(late=begin, epoch=self._epoch, is_full=first == 0, is_sweep=True, is_urgent=is_urgent)

    def _sweep_from(self, epoch: float) -> None:
        self._urgent_end = self._epoch
        if self._urgent is None or epoch < self._urgent:
            self._urgent, self._sweeps[True] = epoch, None

    def _swept(self, reading: Reading, took_in_all: int, at: float, is_swept: bool) -> None:
        took, is_urgent = max(0.0, took_in_all - self._near_took), reading.is_urgent
        self._was_urgent = is_urgent
        self._urgent_rests_until = at + URGENT_PAUSE * took / 1e6
        if not is_urgent:
            self._rests_until = at + PAUSE * took / 1e6
        sweep = self._sweeps[is_urgent]
        if sweep is None or sweep.until != reading.until or not is_swept:
            return
        self._sweeps[is_urgent] = None
        first = self._place_of(self._urgent or 0.0 if is_urgent else self._cursor)
        end = self._urgent_end if is_urgent else self._round_end
        after = None if reading.until is None or reading.until >= end else reading.until
        if is_urgent:
            self._urgent = after
        else:
            self._cursor = after or 0.0
        if took < CHEAP:
            self._span = min(MARKS, self._span * 2)
        elif took > DEAR and self._span > 1:
            self._span //= 2
        elif took > DEAR:
            self._split(first)

    def _split(self, first: int) -> None:
        """Make two slices of one that takes too long, by time."""
        low = self._marks[first]
        high = self._marks[first + 1] if first + 1 < len(self._marks) else _Mark(self._epoch, self._near, 0)
        end = min(high.positions)[0]
        if low.latest == START[0]:
            middle = end - self._split_by
            self._split_by *= 2
        else:
            middle = (low.latest + end) // 2
        epoch = (low.epoch + high.epoch) / 2
        if low.latest < middle < end and low.epoch < epoch < high.epoch and len(self._marks) < MARKS:
            positions = [
                min(max((middle, FIRST_ID), begin), until)
                for begin, until in zip(low.positions, high.positions, strict=True)
            ]
            self._marks.insert(first + 1, _Mark(epoch, positions, max(positions)[0]))

    def _turn(self, at: float) -> None:
        """Move the late range on, and mark where it begins, if it is time."""
        if self._taken < NEAR_JOBS and at - self._newer_since < NEAR_SECONDS:
            return
        self._near, self._newer = self._newer, list(self._reached)
        self._epoch += 1
        self._taken, self._newer_since = 0, at
        is_long = self._taken_unmarked >= NEAR_JOBS * self._stride
        if is_long or at - self._marked_since >= NEAR_SECONDS * self._stride:
            self._taken_unmarked, self._marked_since = 0, at
            self._marks.append(_Mark(self._epoch, list(self._near), max(self._near)[0]))
            if len(self._marks) > MARKS:
                del self._marks[1::2]
                self._stride *= 2

    def _place_of(self, epoch: float) -> int:
        return bisect_right(self._marks, epoch, key=lambda mark: mark.epoch) - 1
