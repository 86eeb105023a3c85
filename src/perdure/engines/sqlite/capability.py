"""What the SQLite engine can do, and what should be known about the SQLite it was found with."""

from __future__ import annotations

import sqlite3

from perdure.store.capability import Capabilities

_RESET_FIXED = (3, 51, 3)


def capabilities(path: str | None) -> Capabilities:
    """The capabilities of a store in a file or, without one, in memory."""
    if path is None:
        durability = "Nothing survives the end of the process: the store is in its memory."
    else:
        durability = (
            "What was answered survives crashes and power loss: write-ahead log, synchronous=FULL, one fsync a commit."
        )
    return Capabilities(
        engine="sqlite",
        version=sqlite3.sqlite_version,
        durability=durability,
        has_caller_transactions=path is not None,
        is_shared=path is not None,
        is_embedded=True,
        warnings=_warnings(path),
    )


def _warnings(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ("The store is in memory: every job is gone when this process ends.",)
    if sqlite3.sqlite_version_info < _RESET_FIXED:
        return (
            f"SQLite {sqlite3.sqlite_version} is older than 3.51.3 and can damage its write-ahead log when several"
            " processes checkpoint; Perdure works in its safe mode (one checkpointer at a time), but connections of"
            " your own to the same file should set PRAGMA wal_autocheckpoint = 0.",
        )
    return ()
