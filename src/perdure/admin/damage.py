"""Tells a record that cannot be read from one that does not exist."""

from __future__ import annotations

from typing import Literal

from perdure.admin.reply_generator import Steps, ask
from perdure.errors import RecordDamaged
from perdure.store import Store


def check_readable(store: Store, kind: Literal["job", "schedule"], name: str) -> Steps[None]:
    """Raise RecordDamaged when there is such a record and it cannot be read; asked when nothing readable was found."""
    problem = yield from ask(store.examine(kind, name))
    if problem is not None:
        raise damaged(kind, name, problem)


def damaged(kind: str, name: str, problem: str) -> RecordDamaged:
    """The error for a record that cannot be read."""
    return RecordDamaged(
        f"The {kind} {name[:100]} cannot be read by this version ({problem}).",
        "It is left as it is. `perdure doctor` says what to do: upgrade if a later version wrote it, else mend or"
        " remove the record.",
    )
