"""What a role needs to be granted on the tables of a store, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.engines.postgres.sql import quoted
from perdure.engines.postgres.verb import Row, Step
from perdure.errors import EngineUnreachable

_ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")
NEEDED: dict[str, tuple[str, ...]] = {
    "schema": ("SELECT",),
    "jobs": _ALL,
    "attempts": ("SELECT", "INSERT", "DELETE"),
    "workers": _ALL,
    "queues": _ALL,
    "queue_settings": ("SELECT", "INSERT", "UPDATE"),
    "notes": _ALL,
    "schedules": _ALL,
    "forwards": _ALL,
}
"""What workers, the command line and the REST API do with each table; docs/postgres.md grants exactly that."""


def rights_step(schema: str) -> Step:
    """The statement that looks what the role lacks; works without any right on the schema."""
    return Step("rights", values_of(schema))


def values_of(schema: str) -> dict[str, Any]:
    """The parameters of rights.sql."""
    pairs = [(table, right) for table, rights in NEEDED.items() for right in rights]
    return {"schema": schema, "tables": [table for table, _ in pairs], "rights": [right for _, right in pairs]}


def lacking(rows: Sequence[Row], schema: str) -> str | None:
    """What the role lacks, and the statements that grant it; None when it has all it needs."""
    ((role, has_usage, missing),) = rows
    grants = [] if has_usage else [f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {quoted(role)};"]
    for table, needed in NEEDED.items():
        rights = [right for right in needed if f"{right} {table}" in missing]
        if rights:
            grants.append(f"GRANT {', '.join(rights)} ON {quoted(schema)}.{table} TO {quoted(role)};")
    if not grants:
        return None
    return (
        f"The role {role} lacks rights that workers and operators need in the schema {schema}. As the owner of the"
        f" schema, run: {' '.join(grants)}"
    )


def denied(rows: Sequence[Row], schema: str, said: str) -> EngineUnreachable:
    """What to raise when the role may not even see which version the store has."""
    return EngineUnreachable(
        f"The role of the store's URL may not read the schema {schema} ({said}).",
        lacking(rows, schema) or "Check the rights of the role: see Rights in docs/postgres.md.",
    )


def may_not_migrate(schema: str, said: str) -> EngineUnreachable:
    """What to raise when the role may not change the store's tables."""
    return EngineUnreachable(
        f"The role of the store's URL may not migrate the schema {schema} ({said}).",
        "Run `perdure db migrate` as the role that owns the schema, or hand the statements of `perdure db sql` to"
        " that role; see Rights in docs/postgres.md.",
    )
