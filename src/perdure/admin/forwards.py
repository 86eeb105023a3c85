"""What operators ask about the forwarding of dead jobs, and how they have it tried again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.admin.selection import Selection, read_id, select_dead
from perdure.model.forward import Forward
from perdure.model.job import JobId
from perdure.store import Store
from perdure.store.reply import Reply


def forwards(store: Store, ids: Sequence[str]) -> Reply[dict[JobId, Forward]]:
    """How far the forwarding of these jobs is; jobs that are not to be forwarded are left out."""
    return store.forwards([read_id(text) for text in ids])


@stepped
def forward(store: Store, ids: Sequence[str], filters: Mapping[str, Any]) -> Steps[int]:
    """Have dead jobs tried again now, by id or filters; gives how many are due. Those that are forwarded stay so."""
    selection = yield from select_dead(store, ids, filters)
    return (yield from ask(forward_selected(store, selection)))


def forward_selected(store: Store, selection: Selection) -> Reply[int]:
    """Have the dead jobs of a selection tried again now; gives how many are due."""
    return store.forward_now(selection.where)
