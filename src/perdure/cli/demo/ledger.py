"""The demo's ledger: what handlers really did, written by them to a file outside of the store.

Each line is one append of a few bytes, so that lines of several processes never mix and a kill cannot tear one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from perdure.model.job import JobId
from perdure.runtime.context import CurrentJob, current_job

FOLDER_VARIABLE = "PERDURE_DEMO_FOLDER"
"""The environment variable by which workers, and the children they start, find the demo's folder."""

_FILE = "ledger.txt"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line: an attempt started, or its handler came to its end without raising."""

    kind: str
    job_id: JobId
    attempt: int
    pid: int


@contextmanager
def recorded() -> Iterator[CurrentJob]:
    """Around the body of a handler: notes the start, and the finish unless it raised."""
    job = current_job()
    _append("start", job)
    yield job
    _append("finish", job)


def read_ledger(folder: Path) -> list[Entry]:
    """Every line, in the order of writing."""
    try:
        text = (folder / _FILE).read_text(encoding="ascii")
    except FileNotFoundError:
        return []  # no handler has started yet
    # What follows the last line end is a line that is being written at this moment.
    return [_entry(line) for line in text.split("\n")[:-1]]


def _append(kind: str, job: CurrentJob) -> None:
    path = Path(os.environ[FOLDER_VARIABLE], _FILE)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{kind} {job.id} {job.attempt} {os.getpid()}\n".encode("ascii"))
    finally:
        os.close(descriptor)


def _entry(line: str) -> Entry:
    kind, job_id, attempt, pid = line.split(" ")
    return Entry(kind=kind, job_id=JobId(job_id), attempt=int(attempt), pid=int(pid))
