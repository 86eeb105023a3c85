"""What operators set about queues, for all workers to follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.admin.operate import check_queue
from perdure.admin.reply_generator import Steps, ask, stepped
from perdure.errors import BadOption
from perdure.model.queue.settings import FIELDS, Cap, QueueSettings
from perdure.store import Store

SETTING_NAMES = ("retry_share", "strict", "max_retries_running", "concurrency")
"""The settings as operators call them."""


@stepped
def configure(
    store: Store,
    queue: str,
    *,
    retry_share: float | None = None,
    strict: bool | None = None,
    max_retries_running: Cap | None = None,
    concurrency: Cap | None = None,
    unset: Sequence[str] = (),
) -> Steps[QueueSettings]:
    """Set what is given, take back what is named in `unset`, and leave the rest; what is now set."""
    check_queue(queue)
    given: dict[str, Any] = {
        "retry_share": retry_share,
        "is_strict": strict,
        "max_retries_running": max_retries_running,
        "concurrency": concurrency,
    }
    named = {name for name, value in given.items() if value is not None}
    taken_back = {_field(name) for name in unset}
    if both := sorted(named & taken_back):
        raise BadOption(f"{', '.join(both)} is to be set and taken back at once.", "Give it once.")
    if not named | taken_back:
        raise BadOption("Nothing says what to set.", f"There are: {', '.join(SETTING_NAMES)}.")
    settings = QueueSettings(**given)
    return (yield from ask(store.configure(queue, settings, sorted(named | taken_back))))


def _field(name: str) -> str:
    field = "is_strict" if name == "strict" else name.replace("-", "_")
    if field not in FIELDS:
        raise BadOption(f"There is no setting {name!r} of a queue.", f"There are: {', '.join(SETTING_NAMES)}.")
    return field
