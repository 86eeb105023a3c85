"""Opens connections to a SQLite file with the settings that Perdure's promises rest on."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from perdure.engines.sqlite.fault import is_busy, to_perdure_error
from perdure.errors import EngineBusy, EngineError, EngineFull, EngineUnreachable, EngineUnusable
from perdure.model.failure import Failure

OLDEST = (3, 35, 0)
"""The first SQLite with RETURNING."""

BUSY_TIMEOUT = 2.0
CLAIM_TRIES = 10
BACK_OFF_CAP = 0.5
_BACK_OFF_START = 0.01
_CACHE = 6000
"""How many KiB of pages a writer keeps: enough for the upper levels of large indexes; with more, only memory grows."""

_COMMON = (
    "PRAGMA wal_autocheckpoint = 0",
    # [INV-1] A commit returns after its fsync.
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
)
_decode_failure = msgspec.json.Decoder(Failure).decode


def connect(path: str | None) -> sqlite3.Connection:
    """A connection that may write, to the file or, without one, to a new private database in memory."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise EngineUnusable(
            f"This Python comes with SQLite {sqlite3.sqlite_version}, and Perdure needs 3.35 or newer.",
            "Use a newer Python or SQLite.",
        )
    if path is not None:
        _create(path)
    connection = _open(path or ":memory:")
    try:
        if path is not None:
            _switch_to_wal(connection, path)
        connection.execute(f"PRAGMA cache_size = -{_CACHE}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: str) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = _open(path)
    connection.execute("PRAGMA query_only = ON")
    return connection


def begin(
    connection: sqlite3.Connection, rng: random.Random, first: str = "BEGIN IMMEDIATE", values: Sequence[Any] = ()
) -> None:
    """Take the write lock with the first statement; on contention try again up to ten times.

    Each time it backs off with jitter, up to half a second. A first statement that is no BEGIN is a transaction of its
    own.
    """
    for turn in range(CLAIM_TRIES):
        try:
            connection.execute(first, values)
        except sqlite3.OperationalError as error:
            if not is_busy(error) or turn == CLAIM_TRIES - 1:
                raise
            time.sleep(rng.uniform(0.0, min(BACK_OFF_CAP, _BACK_OFF_START * 2**turn)))
        else:
            return


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo the open transaction, if SQLite has not done so by itself."""
    if connection.in_transaction:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            # After a failed write there may be nothing left to undo; the caller reports the first error.
            pass


def _create(path: str) -> None:
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        raise EngineUnusable(
            f"The SQLite file {path} cannot be made: the directory {parent} does not exist.",
            "Make the directory, or choose another path.",
        )
    try:
        # Only ever a file that nobody has open: closing a descriptor of an open database would drop SQLite's locks.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if os.path.isdir(path):
            raise EngineUnusable(
                f"The SQLite file {path} cannot be opened: it is a directory.", "Choose another path."
            ) from None
    except OSError as error:
        raise _not_made(path, error) from error


def _not_made(path: str, error: OSError) -> EngineError:
    what = f"The SQLite file {path} cannot be made ({error.strerror})."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EngineFull(what, "Free disk space.")
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.EIO):
        return EngineUnreachable(what, "Raise the limit of open files, or check the disk.")
    return EngineUnusable(what, "Give this user the right to write to the directory, or choose another path.")


def _open(target: str) -> sqlite3.Connection:
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(
            # Never made anew: a file that was deleted is an error.
            target if target == ":memory:" else f"file:{quote(os.fsencode(target))}?mode=rw",
            uri=True,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            # Each connection belongs to one thread or one lock; it is only opened and closed in others.
            check_same_thread=False,
            cached_statements=256,
        )
        for pragma in _COMMON:
            connection.execute(pragma)
        connection.create_function("perdure_error_has", 2, _error_has, deterministic=True)
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise to_perdure_error(error, target) from error
    return connection


def _switch_to_wal(connection: sqlite3.Connection, path: str) -> None:
    """Put the file into WAL mode; the switch needs the file alone for a moment, and SQLite does not wait for that."""
    rng = random.Random()
    error: sqlite3.Error | None = None
    for turn in range(4 * CLAIM_TRIES):
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.Error as raised:
            if not is_busy(raised):
                raise to_perdure_error(raised, path) from raised
            error = raised
        else:
            if mode == "wal":
                return
        time.sleep(rng.uniform(0.0, min(BACK_OFF_CAP, _BACK_OFF_START * 2**turn)))
    raise EngineBusy(
        f"The SQLite file {path} could not be put into WAL mode.",
        "Another program holds it open in another mode; close that, and keep the file on a local disk.",
    ) from error


def _error_has(error: str | None, part: str) -> bool:
    """Whether a stored error's type or message contains the part, letter case ignored in any script."""
    if error is None:
        return False
    try:
        failure = _decode_failure(error)
    except msgspec.MsgspecError:
        return False  # it cannot be read, and is named where its job is read
    wanted = part.casefold()
    return wanted in failure.type.casefold() or wanted in failure.message.casefold()
