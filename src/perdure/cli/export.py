"""Writes dead jobs as JSON lines, page by page, so that any number of them fits in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from perdure.admin import inspect
from perdure.admin.document import attempt_document, forward_document, job_document
from perdure.admin.payload_view import PayloadView
from perdure.cli import output
from perdure.cli.output import plural
from perdure.cli.private_file import private_file
from perdure.cli.progress import progress
from perdure.cli.session import Session
from perdure.model.job import Job
from perdure.store import Store

_PAGE = 50
"""How many jobs are loaded at once: each may have several hundred kilobytes of payload."""


def export_dead(
    session: Session,
    store: Store,
    filters: Mapping[str, Any],
    *,
    path: str,
    has_history: bool,
    view: PayloadView,
    may_overwrite: bool,
) -> None:
    """Write every matching dead job to the file, or to stdout for `-`."""
    wanted = {**filters, "state": "dead"}
    total = inspect.count(store, wanted).wait()
    done = 0
    with (
        _opened(path, may_overwrite=may_overwrite) as target,
        progress("exporting", total, is_wanted=path != "-" and not session.is_json) as tell,
    ):
        for job in _all(store, wanted):
            forward = store.forwards([job.id]).wait().get(job.id)
            document = {**job_document(job, view), "forward": forward_document(forward, view)}
            if has_history:
                attempts = store.history(job.id, 1_000).wait()
                document["attempts"] = [attempt_document(attempt, view) for attempt in attempts]
            target.write(json.dumps(document) + "\n")
            done += 1
            tell(1)
    if path == "-":
        return
    if session.is_json:
        session.emit({"count": done, "path": path})
    else:
        output.say(f"{plural(done, 'dead job')} written to {path}.")


def _all(store: Store, filters: Mapping[str, Any]) -> Iterator[Job]:
    cursor: str | None = None
    while True:
        page = inspect.list(store, filters, limit=_PAGE, cursor=cursor).wait()
        yield from page
        cursor = page.next_cursor
        if cursor is None:
            return


@contextmanager
def _opened(path: str, *, may_overwrite: bool) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdout
        return
    with private_file(path, may_overwrite=may_overwrite) as target:
        yield target
