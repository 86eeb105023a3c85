"""The attempts of a job as documents, bounded in bytes: those that are shown last in a long list are cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from perdure.admin.document import attempt_document
from perdure.admin.payload_view import PayloadView
from perdure.model.job import Attempt
from perdure.web.paging import LARGEST_PAGE

_MOST_WHEN_FULL = 200
"""How much of a message, a detail and a trace is shown once the documents before it have filled a page."""


def attempt_documents(newest_first: Iterable[Attempt], view: PayloadView) -> list[dict[str, Any]]:
    """The documents of attempts, in the order given; the newest ones are shown whole."""
    room = LARGEST_PAGE
    short = msgspec.structs.replace(view, most_bytes=_MOST_WHEN_FULL)
    found: list[dict[str, Any]] = []
    for attempt in newest_first:
        document = attempt_document(attempt, view)
        size = len(msgspec.json.encode(document))
        found.append(document if size <= room else attempt_document(attempt, short))
        room -= min(room, size)
    return found
