"""Brings a database to the version of the schema that this Perdure works with, safely beside others who do the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from perdure.engines.migrator import Migration, migrations, missing, wanted_version
from perdure.engines.postgres.connection import ThreadConnection
from perdure.engines.postgres.rights import denied, may_not_migrate, values_of
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
    try:
        version = found_version(connection, schema)
    except psycopg.errors.InsufficientPrivilege as error:
        raise denied(_run(connection, "rights", schema, values_of(schema)), schema, _said(error)) from error
    if not missing(PACKAGE, version, auto_migrate=auto_migrate):
        return
    try:
        _apply(connection, schema, now)
    except psycopg.errors.InsufficientPrivilege as error:
        raise may_not_migrate(schema, _said(error)) from error


def _apply(connection: ThreadConnection, schema: str, now: int | None) -> None:
    with connection.transaction():
        # A change of a table waits for all who use it, and all others wait behind it: better to give up after a while.
        connection.execute(f"{_SEARCH_PATH} SET LOCAL lock_timeout = {_PATIENCE_MS}".encode())
        _run(connection, "fetch_lock", schema, {"keys": [f"perdure {schema} migration"]})
        ((is_schema_there, _),) = _run(connection, "schema_found", schema, {"schema": schema})
        # Looked at again under the lock: another process may have migrated meanwhile.
        for migration in missing(PACKAGE, found_version(connection, schema), auto_migrate=True):
            # Even with IF NOT EXISTS, to create a schema needs a right on the database.
            connection.execute(_script(migration, schema, creates_schema=not is_schema_there).encode())
            _run(connection, "schema_applied", schema, {"version": migration.version, "now": now})


def found_version(connection: ThreadConnection, schema: str) -> int:
    """The version that the database has; 0 when it has none of Perdure's tables."""
    ((_, is_there),) = _run(connection, "schema_found", schema, {"schema": schema})
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


def _script(migration: Migration, schema: str, *, creates_schema: bool = True) -> str:
    text = in_schema(migration.text, schema).strip()
    if migration.version == 1 and creates_schema:
        return f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)};\n\n{text}"
    return text


def _run(connection: ThreadConnection, name: str, schema: str, values: dict[str, Any] | None = None) -> Sequence[Row]:
    found = statement(name, schema)
    cursor = psycopg.RawCursor(connection)
    cursor.execute(found.text, found.values(values or {}))
    return cursor.fetchall() if cursor.description else []


def _said(error: psycopg.Error) -> str:
    return error.diag.message_primary or type(error).__name__
