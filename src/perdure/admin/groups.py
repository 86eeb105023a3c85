"""Error groups: dead jobs that failed alike, largest group first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.admin.selection import read_filters, require_dead
from perdure.errors import BadOption
from perdure.store import Store
from perdure.store.reads import ErrorGroup

LARGEST_LIST = 1_000


@stepped
def groups(store: Store, filters: Mapping[str, Any], *, limit: int = 50) -> Steps[list[ErrorGroup]]:
    """The error groups of matching dead jobs."""
    if not 1 <= limit <= LARGEST_LIST:
        raise BadOption(f"limit is {limit}; it must lie between 1 and {LARGEST_LIST}.")
    require_dead(filters)
    where = yield from read_filters(store, filters)
    return (yield from ask(store.groups(where, limit)))
