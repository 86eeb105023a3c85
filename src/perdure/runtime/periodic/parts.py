"""The parts of a worker that go in a rhythm of their own, beside the pipeline of jobs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import msgspec

from perdure.model.event import Observer
from perdure.model.job import Job
from perdure.runtime.handler import Registry
from perdure.runtime.in_flight import Held
from perdure.runtime.liveness.lease_watch import LeaseWatch
from perdure.runtime.membership import Membership
from perdure.runtime.periodic.canceller import Canceller
from perdure.runtime.periodic.loop import Loop
from perdure.runtime.periodic.pruner import Pruner
from perdure.runtime.periodic.reaper import Reaper
from perdure.runtime.periodic.scheduler import Scheduler
from perdure.runtime.periodic.tuner import Tuner
from perdure.runtime.periodic.unparker import Unparker
from perdure.runtime.plan import Plan
from perdure.store import Store
from perdure.system.clock import Clock

_LONGEST_REAPING = 5.0
"""How many seconds pass at most between two looks for vanished workers."""


class Background(msgspec.Struct, frozen=True, kw_only=True):
    """The parts by name."""

    hinted: dict[str, Loop]
    """Those that take a step when the store hints that something has changed."""
    unhinted: dict[str, Loop]
    scheduler: Loop


def make_background(
    *,
    store: Store,
    registry: Registry,
    plan: Plan,
    clock: Clock,
    random: Random,
    observer: Observer,
    held: Held,
    membership: Membership,
    tuner: Tuner,
    room: Callable[[], int],
    deliver: Callable[[list[Job]], None],
    make_loop: Callable[[str, Callable[[], Coroutine[Any, Any, float]]], Loop],
) -> Background:
    """Make the parts, which do not run yet; `make_loop` gives a part its rhythm."""
    poll = plan.poll.total_seconds()
    reaper = Reaper(
        store=store,
        registry=registry,
        clock=clock,
        random=random,
        observer=observer,
        every=min(plan.lease.total_seconds() / 3, _LONGEST_REAPING),
        watch=LeaseWatch(clock),
    )
    scheduler = make_loop(
        "scheduler",
        Scheduler(
            store=store, clock=clock, random=random, observer=observer, poll=poll, definitions=plan.schedules
        ).step,
    )
    unparker = Unparker(
        store=store,
        membership=membership,
        plan=plan,
        registry=registry,
        fairness=tuner.fairness,
        room=room,
        deliver=deliver,
    )
    canceller = Canceller(store=store, held=held, worker=lambda: membership.id, poll=poll)
    return Background(
        hinted={
            "canceller": make_loop("canceller", canceller.step),
            "tuner": make_loop("tuner", tuner.step),
            "scheduler": scheduler,
        },
        unhinted={
            "reaper": make_loop("reaper", reaper.step),
            "unparker": make_loop("unparker", unparker.step),
            "pruner": make_loop("pruner", Pruner(store=store, clock=clock, retention=plan.retention).step),
        },
        scheduler=scheduler,
    )
