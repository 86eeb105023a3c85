"""Turns what SQLite raises into Perdure's errors, so that no driver exception leaves the engine."""

from __future__ import annotations

import sqlite3

from perdure.errors import (
    BadOption,
    EngineBusy,
    EngineError,
    EngineFull,
    EngineUnreachable,
    EngineUnusable,
    PerdureError,
)

BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_IO_HINT = "Check the disk and the file system under it; nothing was stored by this call."
_UNUSABLE = {
    sqlite3.SQLITE_CANTOPEN: "Check that its directory exists and that this user may write to both.",
    sqlite3.SQLITE_NOTADB: "Choose another file name; this one belongs to something else, or is damaged.",
    sqlite3.SQLITE_READONLY: "Give this user the right to write to the file and its directory.",
    sqlite3.SQLITE_PERM: "Give this user the right to write to the file and its directory.",
    sqlite3.SQLITE_AUTH: "Give this user the right to write to the file and its directory.",
    sqlite3.SQLITE_CORRUPT: "Stop all workers, copy the file, and run `PRAGMA integrity_check` on the copy.",
    sqlite3.SQLITE_PROTOCOL: "Check that the file is on a local disk, not on a network file system.",
}


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 when the driver itself raised."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether others held the file for too long."""
    return primary_code(error) in BUSY


def to_perdure_error(error: BaseException, where: str) -> BaseException:
    """What the caller should see instead of `error`; `where` names the file. Perdure's own errors stay as they are."""
    found: PerdureError
    if isinstance(error, sqlite3.Error):
        found = _from_sqlite(error, where)
    elif isinstance(error, UnicodeError):
        found = BadOption("A text holds half of a surrogate pair, which cannot be stored.", "Give valid Unicode text.")
    elif isinstance(error, OverflowError):
        found = BadOption("A number is too large to be stored.", "Integers go up to 2^63 - 1.")
    elif isinstance(error, OSError):
        found = EngineUnreachable(
            f"The SQLite file {where} cannot be used ({error.strerror or type(error).__name__}).",
            "Check how many files this process has open, and its limit; nothing was stored by this call.",
        )
    else:
        return error
    found.__cause__ = error
    return found


def _from_sqlite(error: sqlite3.Error, where: str) -> EngineError:
    code = primary_code(error)
    if code in BUSY:
        return EngineBusy(
            f"The SQLite file {where} was locked by others for too long ({error}).",
            "Find the process that holds a long write transaction on it; the same call may be tried again.",
        )
    if code == sqlite3.SQLITE_FULL:
        return EngineFull(
            f"There is no room to store anything more in the SQLite file {where} ({error}).",
            "Free disk space; the store goes on by itself then, and nothing stored is lost.",
        )
    if code == sqlite3.SQLITE_IOERR:
        return EngineUnreachable(f"The SQLite file {where} cannot be used ({error}).", _IO_HINT)
    if code in _UNUSABLE:
        return EngineUnusable(f"The SQLite file {where} cannot be used ({error}).", _UNUSABLE[code])
    return EngineError(
        f"SQLite refused a statement on {where} ({type(error).__name__}: {error}).",
        "If no other program changes Perdure's tables, this is a defect; please report it.",
    )
