"""Puts a worker or a scheduler together from what an app knows and the surroundings it runs in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from random import Random, SystemRandom

import msgspec

from perdure.application.identity import Ids, version
from perdure.application.registry import Registry
from perdure.application.served_tasks import warn_of_queues
from perdure.application.sinks import Sinks
from perdure.configuration.settings import Settings
from perdure.model.event import Observer, Tracing
from perdure.model.queue.turns import read_weights
from perdure.runtime.backoff import Backoff
from perdure.runtime.children.entry import current_entry, stop_in_child, stop_main_in_child
from perdure.runtime.outage import Outage
from perdure.runtime.periodic.scheduler import LoneScheduler, Scheduler
from perdure.runtime.plan import Plan
from perdure.runtime.worker import Worker
from perdure.store import Store
from perdure.system.clock import Clock, SystemClock

_LATE = (
    "perdure.http.network",
    "perdure.http.pool",
    "perdure.http.send",
    "perdure.model.policy.parser",
    "perdure.model.policy.text",
    "perdure.model.policy.presets",
    "perdure.observe.exposition",
    # Of the standard library: threads of the event loop, names of hosts, and what tracebacks are formatted with.
    "concurrent.futures.thread",
    "encodings.idna",
    "linecache",
    "tokenize",
    "unicodedata",
)
"""The modules that code imports inside of functions, so that others need not wait for them."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What an app works in: real time and the configured store, or a test's."""

    clock: Clock
    random: Random
    ids: Ids
    open_store: Callable[[], Store]
    open_store_by: Callable[[Clock], Store] | None = None
    """Opens the same store once more, by another clock than its own; None where only one may be open."""

    @classmethod
    def real(cls, open_store: Callable[[Clock], Store]) -> Surroundings:
        """Real time, and ids by the system's own chance."""
        clock = SystemClock()

        def open_by(clock: Clock) -> Store:
            stop_main_in_child()
            return open_store(clock)

        return cls(
            clock=clock,
            random=Random(),
            ids=Ids(clock, SystemRandom(), stock=64),
            open_store=lambda: open_by(clock),
            open_store_by=open_by,
        )


def preload() -> None:
    """Import what is otherwise imported when it is first used.

    A process that has run out of descriptors cannot read a module; one that runs jobs or serves requests must not need
    to. Programs that only enqueue do not wait for it.
    """
    for name in _LATE:
        import_module(name)
    version()  # reads a file of the installation once


def make_worker(
    registry: Registry,
    settings: Settings,
    *,
    sinks: Sinks,
    store: Store,
    here: Surroundings,
    observer: Observer,
    queues: Sequence[str] | Mapping[str, int] | None,
    concurrency: int | None,
    lease: timedelta | None,
    grace: timedelta | None,
    tracing: Tracing | None,
) -> Worker:
    """A worker that is not running yet; what is not given is as the settings say."""
    stop_in_child()
    preload()
    registry.refuse_unreachable_functions()
    sinks.refuse_circles()
    weights = read_weights(queues or settings.queues or registry.queue_names())
    warn_of_queues(registry, tuple(weights))
    plan = Plan(
        queues=weights,
        concurrency=settings.concurrency if concurrency is None else concurrency,
        lease=settings.lease if lease is None else lease,
        grace=settings.grace if grace is None else grace,
        max_block=settings.max_block,
        poll=settings.poll,
        prefetch=settings.prefetch,
        max_prefetch=settings.max_prefetch,
        retention=settings.retention,
        version=version(),
        schedules=tuple(registry.schedules.values()),
        entry=current_entry(registry.entry_module, sys._getframe()),
    )
    return Worker(
        store=store,
        registry=registry,
        sinks=sinks,
        plan=plan,
        clock=here.clock,
        random=here.random,
        observer=observer,
        new_id=here.ids.worker,
        tracing=tracing,
    )


def make_scheduler(
    registry: Registry, settings: Settings, *, store: Store, here: Surroundings, observer: Observer
) -> LoneScheduler:
    """What fires schedules by itself; it is not running yet."""
    scheduler = Scheduler(
        store=store,
        clock=here.clock,
        random=here.random,
        observer=observer,
        poll=settings.poll.total_seconds(),
        definitions=tuple(registry.schedules.values()),
    )
    return LoneScheduler(scheduler, store=store, clock=here.clock, random=here.random, observer=observer)


def start_backoff(who: str, here: Surroundings, observer: Observer) -> Backoff:
    """Tells once that the engine is away when a worker or scheduler starts, and when it is there."""
    return Backoff(who, random=here.random, outage=Outage(who, clock=here.clock, observer=observer))
