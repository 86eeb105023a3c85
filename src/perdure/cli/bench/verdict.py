"""Says in plain words what limits an engine here, from what was measured, and what to tune."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.cli.bench.measure import Figures

_NEARLY_FREE = 0.0003
"""A commit that takes less seconds than this has hardly waited for a disk."""
_BUSY = 0.7
"""From this part of its time on a worker is held up by its own computing."""
_SLOW_START = 0.1


def verdict(found: Figures) -> list[str]:
    """One sentence or two for each thing that was found."""
    return [
        *(_sqlite(found) if found.engine == "sqlite" else _server(found)),
        *_batches(found),
        *_worker(found),
        *_starts(found),
    ]


def shown_rate(rate: float) -> str:
    """Jobs per second, for people."""
    return f"{rate:,.0f} jobs/s" if rate >= 10 else f"{rate:.1f} jobs/s"


def shown_time(seconds: float) -> str:
    """A short time, for people."""
    return f"{seconds * 1000:,.0f}ms" if seconds >= 0.01 else f"{seconds * 1000:.2f}ms"


def _sqlite(found: Figures) -> Iterator[str]:
    if not found.is_shared:
        yield "The store is in memory: nothing waits for a disk, and nothing survives the process."
    elif found.commit < _NEARLY_FREE:
        yield (
            f"A commit takes {shown_time(found.commit)}, which is hardly a wait for a disk. It is a very fast one, one "
            "that caches writes, or a file in memory: make sure that it survives a power loss."
        )
    else:
        yield (
            f"A commit takes {shown_time(found.commit)}, as each waits for an fsync: the disk limits jobs that are "
            f"enqueued one by one to about {shown_rate(1 / found.commit)}. A faster local disk helps; so does one "
            "fsync for many jobs."
        )


def _server(found: Figures) -> Iterator[str]:
    if found.commit <= 0:
        return
    flush = max(found.commit - found.round_trip, 0.0)
    if found.round_trip >= found.commit / 2:
        yield (
            f"Making one job durable takes {shown_time(found.commit)}, of which the round trip to the server is "
            f"{shown_time(found.round_trip)}: the way there limits jobs that are enqueued one by one. Run producers "
            "and workers near the server, and let each trip carry many jobs."
        )
    else:
        knobs = {
            "postgres": "A faster disk for its write-ahead log helps then, or synchronous_commit if the last moments "
            "may be lost.",
            "redis": "A faster disk for its append-only file helps then, or appendfsync everysec if a second may be "
            "lost.",
        }
        yield (
            f"Making one job durable takes {shown_time(found.commit)}, of which the round trip is only "
            f"{shown_time(found.round_trip)}: the server's own work takes the other {shown_time(flush)} and limits "
            "jobs that are enqueued one by one. With it goes a flush to disk, if its durability asks for one. "
            f"{knobs.get(found.engine, '')}".strip()
        )


def _batches(found: Figures) -> Iterator[str]:
    if found.bulk.jobs < 10 or found.single.rate <= 0:
        return
    times = found.bulk.rate / found.single.rate
    if times >= 1.5:
        yield (
            f"Enqueued in bulk, jobs are {times:,.0f} times as fast as one by one: use app.enqueue_many, or "
            "enqueue_async from many tasks at once, which travel together by themselves."
        )
    else:
        yield "Batches gain little here: the time goes into the jobs themselves, not into the waits between them."


def _worker(found: Figures) -> Iterator[str]:
    if not found.drain.jobs:
        yield "No job had run when the time was up: give it more with --seconds."
    elif found.drain_cpu >= _BUSY:
        more = (
            "more processes share the file and its one writer, and gain something"
            if found.engine == "sqlite"
            else "more processes (perdure worker --processes 4) gain more"
        )
        yield (
            f"One worker runs {shown_rate(found.drain.rate)} that do nothing, and computes {found.drain_cpu:.0%} of "
            f"that time: its own CPU is the limit, and {more}."
        )
    else:
        yield (
            f"One worker runs {shown_rate(found.drain.rate)} that do nothing, and computes only {found.drain_cpu:.0%} "
            "of that time: it waits for the engine, or for its turn on a busy machine."
        )


def _starts(found: Figures) -> Iterator[str]:
    half, most = found.start(0.5), found.start(0.99)
    if half is None or most is None:
        return
    if most >= _SLOW_START:
        yield (
            f"An idle worker starts half of the jobs within {shown_time(half)}, but some only after "
            f"{shown_time(most)}: hints come late or not at all, so that polling finds them, or the machine is busy. "
            "A shorter poll helps against the first."
        )
    else:
        yield f"An idle worker starts a job within {shown_time(half)}, and nearly always within {shown_time(most)}."
