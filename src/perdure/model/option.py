"""The names and options of a job, checked the same way wherever they come from: code, command line or schedule."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from perdure.errors import BadOption
from perdure.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from perdure.model.state import DELIVERIES, Delivery
from perdure.text.duration import Duration, parse_duration

_NAME = re.compile(r"[A-Za-z0-9_.:<>-]{1,200}", re.ASCII)
_QUEUE = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)
_EARLIEST, _LATEST = 1971, 9998
"""Years that every engine keeps, whatever the offset."""


def checked_name(name: object) -> str:
    """The name of a task, if it can be one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadOption(
            f"The task name {str(name)[:80]!r} cannot be used.",
            "Names have 1 to 200 letters, digits, or any of _ . : < > -",
        )
    return name


def checked_queue(queue: object) -> str:
    """The name of a queue, if it can be one."""
    if not isinstance(queue, str) or not _QUEUE.fullmatch(queue):
        raise BadOption(
            f"The queue name {str(queue)[:80]!r} cannot be used.",
            "Names have 1 to 128 letters, digits, or any of _ . -",
        )
    return queue


def checked_priority(priority: object) -> int:
    """A priority, if it is one."""
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > HIGHEST_PRIORITY:
        raise BadOption(
            f"priority is {priority!r}; it must be a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}.",
            "Higher runs first, 0 is usual.",
        )
    return priority


def checked_delivery(delivery: object) -> Delivery:
    """A delivery, if it is one."""
    for known in DELIVERIES:
        if delivery == known:
            return known
    raise BadOption(f"delivery is {str(delivery)[:40]!r}; it must be one of {', '.join(DELIVERIES)}.")


def checked_moment(moment: object) -> datetime:
    """A run_at, if it is one that can be kept."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise BadOption(
            f"run_at is {str(moment)[:50]!r}; it must be a datetime with a time zone.",
            "For example datetime.now(UTC) + timedelta(hours=1).",
        )
    if not _EARLIEST <= moment.year <= _LATEST:
        raise BadOption(
            f"run_at is {moment}, a moment that cannot be kept.", f"Years go from {_EARLIEST} to {_LATEST}."
        )
    return moment


def checked_timeout(timeout: Duration | None) -> timedelta | None:
    """A timeout, if one is given; never nothing at all."""
    if timeout is None:
        return None
    found = parse_duration(timeout, what="timeout")
    if found <= timedelta(0):
        raise BadOption("timeout is 0, so that no attempt could ever succeed.", "Leave it out for no timeout.")
    return found
