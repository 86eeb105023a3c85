"""Knows the version of the keys' layout, and refuses a store that has another one."""

from __future__ import annotations

from perdure.engines.redis.verb import Call, Verb
from perdure.errors import SchemaTooNew, SchemaTooOld
from perdure.store.reads import SchemaStatus

VERSION = 3
"""The layout that keys.py describes. Those before it were never released."""


def begin() -> Verb[None]:
    """Mark an empty store with the version; refuse one that has another."""
    # Not a change that replicas need to confirm: whoever opens the store next would write the same.
    found = yield Call("schema", (VERSION,))
    if found > VERSION:
        raise SchemaTooNew(
            f"The store has schema version {found}, and this Perdure knows only up to {VERSION}.",
            "Upgrade Perdure on this machine; a newer one has migrated the store.",
        )
    if found < VERSION:
        raise SchemaTooOld(
            f"The store has schema version {found}, which no released Perdure has written.",
            "Let the Perdure that made it drain it, then delete its keys; or name another prefix in the store's URL.",
        )


def schema_status() -> Verb[SchemaStatus]:
    found = yield Call("schema", ("",))
    return SchemaStatus(found=found, wanted=VERSION)
