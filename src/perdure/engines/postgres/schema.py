"""Brings a database to the version of the schema that this Perdure works with, safely beside others who do the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from perdure.engines.migrator import Migration, migrations, missing, wanted_version
from perdure.engines.postgres.connection import ThreadConnection
from perdure.engines.postgres.sql import PACKAGE, in_schema, quoted, statement
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.store.reads import SchemaStatus

_PATIENCE_MS = 30_000
_SEARCH_PATH = "SET LOCAL search_path = pg_catalog, pg_temp;"
"""Only for the transaction of a migration: its types, operators and collations are PostgreSQL's own."""


def schema_status() -> Verb[SchemaStatus]:
    """Which version the store has, and which is wanted."""
    return Verb(_status, is_repeatable=True)


def migrate(connection: ThreadConnection, schema: str, now: int | None, *, auto_migrate: bool) -> None:
    """Apply what is missing, all or nothing; refuse newer stores, and older ones unless asked."""
    if not missing(PACKAGE, found_version(connection, schema), auto_migrate=auto_migrate):
        return
    with connection.transaction():
        # A change of a table waits for all who use it, and all others wait behind it: better to give up after a while.
        connection.execute(f"{_SEARCH_PATH} SET LOCAL lock_timeout = {_PATIENCE_MS}".encode())
        _run(connection, "fetch_lock", schema, {"keys": [f"perdure {schema} migration"]})
        # Looked at again under the lock: another process may have migrated meanwhile.
        for migration in missing(PACKAGE, found_version(connection, schema), auto_migrate=True):
            connection.execute(_script(migration, schema).encode())
            _run(connection, "schema_applied", schema, {"version": migration.version, "now": now})


def found_version(connection: ThreadConnection, schema: str) -> int:
    """The version that the database has; 0 when it has none of Perdure's tables."""
    ((is_there,),) = _run(connection, "schema_found", schema, {"schema": schema})
    if not is_there:
        return 0
    ((version,),) = _run(connection, "schema_version", schema)
    return int(version or 0)


def schema_sql(schema: str) -> str:
    """All migrations as one script, for whoever may not let programs change tables."""
    parts = [f"-- Perdure's schema, version {wanted_version(PACKAGE)}.", "BEGIN;", _SEARCH_PATH]
    for migration in migrations(PACKAGE):
        noted = "(EXTRACT(EPOCH FROM STATEMENT_TIMESTAMP()) * 1000000)::bigint"
        parts.append(_script(migration, schema))
        parts.append(
            f"INSERT INTO {quoted(schema)}.schema (version, applied_at) VALUES ({migration.version}, {noted});"
        )
    return "\n\n".join([*parts, "COMMIT;"])


def _status() -> Script[SchemaStatus]:
    ((version,),) = yield Step("schema_version")
    return SchemaStatus(found=int(version or 0), wanted=wanted_version(PACKAGE))


def _script(migration: Migration, schema: str) -> str:
    text = in_schema(migration.text, schema).strip()
    return f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)};\n\n{text}" if migration.version == 1 else text


def _run(connection: ThreadConnection, name: str, schema: str, values: dict[str, Any] | None = None) -> Sequence[Row]:
    found = statement(name, schema)
    cursor = psycopg.RawCursor(connection)
    cursor.execute(found.text, found.values(values or {}))
    return cursor.fetchall() if cursor.description else []
