"""The demo's app: a small shop whose tasks call services that fail on purpose, and the worker that runs them.

How the fake services behave is part of each job's arguments, drawn from the demo's seed: nothing here is left to
chance, and nothing leaves the machine.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from perdure.app import App
from perdure.cli.demo.ledger import FOLDER_VARIABLE, recorded
from perdure.configuration.settings import Settings
from perdure.errors import GiveUp, RetryAfter
from perdure.model.policy.retry import Retry
from perdure.observe.log_stream import configure

QUEUE = "shop"
SLOTS = 8
LEASE = timedelta(seconds=2)
CRASH_CODE = 70
"""What a worker exits with when the photo that crashes it is opened."""

BOUNCING = "nobody@nowhere.invalid"
CLOSED = "closed@shop.invalid"

_QUICK = Retry.exponential("250ms", cap="1s", jitter="equal", max_attempts=6)
_AGES = 20.0


def make_app(folder: Path) -> App:
    """The shop's app on the demo's file; settings of the environment do not reach it."""
    settings = Settings(
        url=store_url(folder),
        queues=(QUEUE,),
        concurrency=SLOTS,
        lease=LEASE,
        grace=timedelta(seconds=1),
        poll=timedelta(milliseconds=250),
    )
    app = App(settings=settings)
    app.task(queue=QUEUE, retry=_QUICK.never(ValueError))(send_receipt)
    app.task(queue=QUEUE, retry=_QUICK, timeout="1s")(render_invoice)
    app.task(queue=QUEUE, retry=_QUICK)(update_stock)
    app.task(queue=QUEUE, delivery="at_most_once")(charge_card)
    app.task(queue=QUEUE, retry=Retry.fixed("200ms", max_attempts=3))(resize_photo)
    app.task(queue=QUEUE, retry=_QUICK)(export_archive)
    app.task(queue=QUEUE, retry=_QUICK)(send_reminder)
    return app


def store_url(folder: Path) -> str:
    """Where the demo keeps its jobs."""
    return f"sqlite:///{folder / 'demo.db'}"


def work() -> None:
    """One worker process: the real worker, its log as JSON on stderr."""
    configure("json", sys.stderr)
    make_app(Path(os.environ[FOLDER_VARIABLE])).run_worker()


async def send_receipt(order: int, to: str, takes: float, outages: int = 0) -> str:
    """Mail a receipt; the mail service is down for the first `outages` attempts."""
    with recorded() as job:
        if "@" not in to:
            raise ValueError(f"no address: {to!r}")
        await asyncio.sleep(takes)
        if to == CLOSED:
            raise GiveUp("the customer closed the account")
        if to == BOUNCING:
            raise ConnectionError("mail service answered 550, no such mailbox")
        if job.attempt <= outages:
            raise ConnectionError("mail service answered 503")
        return f"receipt {order} is on its way"


async def render_invoice(order: int, takes: float, hangs: int = 0) -> str:
    """Have an invoice rendered; the service does not answer for the first `hangs` attempts."""
    with recorded() as job:
        await asyncio.sleep(_AGES if job.attempt <= hangs else takes)
        return f"invoice-{order}.pdf"


def update_stock(order: int, takes: float, throttled: int = 0) -> None:
    """Tell the warehouse, which allows few requests and says when to come back; a plain function, run in a thread."""
    with recorded() as job:
        time.sleep(takes)
        if job.attempt <= throttled:
            raise RetryAfter("700ms", "warehouse answered 429")


async def charge_card(order: int, takes: float, is_declined: bool = False) -> None:
    """Charge a card: at most once, because nobody wants to pay twice."""
    with recorded():
        await asyncio.sleep(takes)
        if is_declined:
            raise PermissionError("the bank declined the card")


async def resize_photo(order: int) -> None:
    """Open a photo that takes the whole process down, as a fault in a C library would."""
    with recorded():
        await asyncio.sleep(0.3)
        os._exit(CRASH_CODE)


async def export_archive(order: int) -> None:
    """Something long that somebody will want to stop."""
    with recorded():
        await asyncio.sleep(_AGES)


async def send_reminder(order: int) -> None:
    """Something for later."""
    with recorded():
        await asyncio.sleep(0)
