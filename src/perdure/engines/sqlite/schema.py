"""Brings a SQLite file to the version of the schema that this Perdure works with, safely beside other openers."""

from __future__ import annotations

import random
import sqlite3

from perdure.engines.migrator import Migration, missing, wanted_version
from perdure.engines.sqlite.connection import begin, roll_back
from perdure.store.reads import SchemaStatus
from perdure.system.clock import Clock

PACKAGE = "perdure.engines.sqlite"


def found_version(connection: sqlite3.Connection) -> int:
    """The version that the file has; 0 when it has none of Perdure's tables."""
    has_schema = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'perdure_schema'"
    ).fetchone()
    if not has_schema:
        return 0
    (version,) = connection.execute("SELECT MAX(version) FROM perdure_schema").fetchone()
    return int(version or 0)


def schema_status(connection: sqlite3.Connection) -> SchemaStatus:
    return SchemaStatus(found=found_version(connection), wanted=wanted_version(PACKAGE))


def migrate(connection: sqlite3.Connection, clock: Clock, *, auto_migrate: bool) -> None:
    """Apply what is missing, all or nothing; refuse newer files, and older ones unless asked."""
    if not missing(PACKAGE, found_version(connection), auto_migrate=auto_migrate):
        return
    begin(connection, random.Random())
    try:
        # Looked at again under the write lock: another process may have migrated meanwhile.
        for migration in missing(PACKAGE, found_version(connection), auto_migrate=True):
            for text in _statements(migration):
                connection.execute(text)
            connection.execute(
                "INSERT INTO perdure_schema (version, applied_at) VALUES (?, ?)",
                (migration.version, clock.microseconds()),
            )
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def _statements(migration: Migration) -> list[str]:
    """The statements of a migration one by one: executescript would commit before it begins."""
    found, pending = [], ""
    for line in migration.text.splitlines(keepends=True):
        if not pending and (not line.strip() or line.startswith("--")):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    if pending:
        raise RuntimeError(f"migration {migration.version} ends inside a statement")
    return found
