"""What is to be different about a job that has not started: when it runs, before which others, where, how often."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypedDict

import msgspec
from msgspec import UNSET, UnsetType

from perdure.errors import BadOption
from perdure.model.option import checked_moment, checked_priority, checked_queue
from perdure.model.policy.limit import Limit, read_limit
from perdure.model.state import Delivery
from perdure.text.duration import Duration, parse_duration

_UNSETTABLE = ("max_attempts", "max_retries")


class Changes(TypedDict, total=False):
    """What may be asked for, in the words of a job's options; `unset` names what is taken back."""

    queue: str | None
    delay: Duration | None
    run_at: datetime | None
    priority: int | None
    max_attempts: Limit | None
    max_retries: Limit | None
    unset: Sequence[str]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a waiting or ready job; what is None or UNSET stays as it is."""

    delay: timedelta | None = None
    """Not before so long from now, by the store's clock. At most one of this and `run_at` is given."""
    run_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    """Where the job belongs from now on; another than the one that it is in forgets its origin."""
    max_attempts: int | UnsetType | None = UNSET
    """None takes the job's own limit back, so that its policy's holds."""
    args: bytes | None = None
    """The arguments as JSON text (UTF-8)."""
    delivery: Delivery | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be different."""
        return self == Change()


def make_change(
    *,
    queue: str | None = None,
    delay: Duration | None = None,
    run_at: datetime | None = None,
    priority: int | None = None,
    max_attempts: Limit | None = None,
    max_retries: Limit | None = None,
    unset: Sequence[str] = (),
) -> Change:
    """Check and unify what a person wants to be different; what is named in `unset` is taken back."""
    if delay is not None and run_at is not None:
        raise BadOption("delay and run_at are both given, and they say different things.", "Give one of them.")
    for name in unset:
        if name not in _UNSETTABLE:
            raise BadOption(f"{str(name)[:40]!r} cannot be taken back.", f"There are: {', '.join(_UNSETTABLE)}.")
    limit = read_limit(max_attempts, max_retries)
    if limit is not None and unset:
        raise BadOption("A limit is given and taken back at once.", "Do one of them.")
    return Change(
        delay=None if delay is None else parse_duration(delay, what="delay"),
        run_at=None if run_at is None else checked_moment(run_at),
        priority=None if priority is None else checked_priority(priority),
        queue=None if queue is None else checked_queue(queue),
        max_attempts=None if unset else UNSET if limit is None else limit,
    )
