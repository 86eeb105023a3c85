"""The demo's jobs: a crowd drawn from the seed, and the few with a part of their own in the story."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from perdure.app import App
from perdure.cli.demo.tasks import BOUNCING, CLOSED
from perdure.task import Bound

_USUAL = 300

_NOUNS = {
    "send_receipt": "receipt",
    "render_invoice": "invoice",
    "update_stock": "stock",
    "charge_card": "charge",
    "resize_photo": "photo",
    "export_archive": "export",
    "send_reminder": "reminder",
}
_FIRST = {"priority": 50}
"""For jobs that come while others wait: what happens to them is to happen in the middle, not at the end."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One job to come, and what the story calls it."""

    label: str
    bound: Bound


class Cast(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs of one run."""

    crowd: tuple[Part, ...]
    """Enqueued in one batch at the start; two of them have the same unique key, so that one job comes of them."""
    reminder: Part
    """In the crowd, far in the future; cancelled while it waits."""
    photo: Part
    """Takes its worker down whenever it runs."""
    charge: Part
    """Runs, at most once, in the worker that will be killed."""
    export: Part
    """Long, and cancelled while it runs."""

    @property
    def count(self) -> int:
        """How many jobs come of it."""
        return len(self.crowd) - 1 + len((self.photo, self.charge, self.export))


def make_cast(app: App, jobs: int, seed: int) -> Cast:
    """Exactly so many jobs, the same ones for the same seed."""
    return _Casting(app, jobs, Random(seed)).cast()


class _Casting:
    def __init__(self, app: App, jobs: int, random: Random) -> None:
        self._app = app
        self._jobs = jobs
        self._random = random
        self._orders = iter(range(1, jobs + 2))
        # Many jobs are each a little quicker, so that the whole stays a demo.
        self._pace = min(1.0, _USUAL / jobs)

    def cast(self) -> Cast:
        photo, export = self._part("resize_photo", options=_FIRST), self._part("export_archive", options=_FIRST)
        charge = self._part("charge_card", takes=20.0, options=_FIRST)
        reminder = self._part("send_reminder", options={"delay": "1h"})
        crowd = [reminder, *self._troubled()]
        key = {"unique": "invoice for order 1001"}
        crowd += [self._part("render_invoice", takes=self._takes(), options=key) for _ in range(2)]
        while len(crowd) - 1 + 3 < self._jobs:
            crowd.append(self._ordinary())
        self._random.shuffle(crowd)
        return Cast(crowd=tuple(crowd), reminder=reminder, photo=photo, charge=charge, export=export)

    def _troubled(self) -> Sequence[Part]:
        """Those that cannot succeed, whatever is tried."""
        return [
            *(self._part("send_receipt", to=BOUNCING, takes=self._takes()) for _ in range(3)),
            *(self._part("send_receipt", to=f"customer {n}", takes=self._takes()) for n in (1, 2)),
            self._part("send_receipt", to=CLOSED, takes=self._takes()),
            self._part("charge_card", takes=self._takes(), is_declined=True),
        ]

    def _ordinary(self) -> Part:
        """One of the many; its service may fail once or twice, but not for ever."""
        kind = self._random.choices(
            ("send_receipt", "render_invoice", "update_stock", "charge_card"), weights=(50, 24, 20, 6)
        )[0]
        match kind:
            case "send_receipt":
                outages = self._random.choices((0, 1, 2), weights=(70, 20, 10))[0]
                to = f"customer{self._random.randrange(1000)}@shop.invalid"
                return self._part(kind, to=to, takes=self._takes(), outages=outages)
            case "render_invoice":
                return self._part(kind, takes=self._takes(), hangs=self._chance(0.15))
            case "update_stock":
                return self._part(kind, takes=self._takes(), throttled=self._chance(0.25))
            case _:
                return self._part(kind, takes=self._takes())

    def _part(self, task: str, *, options: dict[str, Any] | None = None, **arguments: Any) -> Part:
        order = next(self._orders)
        bound = self._app.tasks[task].options(**(options or {})).bind(order, **arguments)
        return Part(label=f"{_NOUNS[task]} {order}", bound=bound)

    def _takes(self) -> float:
        return round(self._pace * self._random.uniform(0.15, 0.6), 3)

    def _chance(self, share: float) -> int:
        return int(self._random.random() < share)
