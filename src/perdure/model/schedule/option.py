"""Builds the definition of a schedule from what people give, or says which option is wrong and why."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TypeVar

from perdure.errors import BadOption
from perdure.model.option import checked_delivery, checked_name, checked_priority, checked_queue, checked_timeout
from perdure.model.policy.limit import Limit, read_limit
from perdure.model.policy.retry import Retry
from perdure.model.schedule.definition import MISSED, OVERLAPS, Definition, read_zone
from perdure.model.state import Delivery
from perdure.text.duration import Duration

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}", re.ASCII)
_ANY = datetime(2000, 1, 1, tzinfo=UTC)
T = TypeVar("T", bound=str)


def make_definition(
    *,
    name: str,
    task: str,
    args: bytes,
    cron: str,
    tz: str = "UTC",
    queue: str = "default",
    priority: int = 0,
    max_attempts: Limit | None = None,
    max_retries: Limit | None = None,
    retry: Retry | str | None = None,
    delivery: Delivery = "at_least_once",
    timeout: Duration | None = None,
    is_recurring: bool = True,
    overlap: str = "skip",
    missed: str = "latest",
) -> Definition:
    """Check and unify what a schedule is asked to be."""
    if not isinstance(cron, str):
        raise BadOption(f"cron is a {type(cron).__name__}; it must be text.", 'For example "0 0 3 * * *".')
    if not isinstance(tz, str):
        raise BadOption(
            f"tz is a {type(tz).__name__}; it must be the name of a time zone.", "For example Europe/Berlin."
        )
    read_zone(tz)
    definition = Definition(
        name=checked_schedule_name(name),
        task=checked_name(task),
        args=args,
        cron=" ".join(cron.split()),
        tz=tz,
        queue=checked_queue(queue),
        priority=checked_priority(priority),
        max_attempts=read_limit(max_attempts, max_retries),
        retry=None if retry is None else Retry.coerce(retry).text,
        delivery=checked_delivery(delivery),
        timeout=checked_timeout(timeout),
        is_recurring=bool(is_recurring),
        overlap=_one_of("overlap", overlap, OVERLAPS),
        missed=_one_of("missed", missed, MISSED),
    )
    definition.ticks(_ANY)  # a rule that cannot be read must be refused here, not by a scheduler
    return definition


def checked_schedule_name(name: object) -> str:
    """The name of a schedule, if it can be one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadOption(
            f"The schedule name {str(name)[:80]!r} cannot be used.",
            "Names have 1 to 200 letters, digits, or any of _ . : -",
        )
    return name


def _one_of(what: str, value: object, known: tuple[T, ...]) -> T:
    for one in known:
        if value == one:
            return one
    raise BadOption(f"{what} is {str(value)[:40]!r}; it must be one of {', '.join(known)}.")
