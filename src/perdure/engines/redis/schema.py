"""Knows the version of the keys' layout, and refuses a store that a newer Perdure has written."""

from __future__ import annotations

from perdure.engines.redis.verb import Call, Verb
from perdure.errors import SchemaTooNew
from perdure.store.reads import SchemaStatus

VERSION = 1
"""The layout that keys.py describes."""


def begin() -> Verb[None]:
    """Mark an empty store with the version; refuse a newer one. There are no older ones yet."""
    # Not a change that replicas need to confirm: whoever opens the store next would write the same.
    found = yield Call("schema", (VERSION,))
    if found > VERSION:
        raise SchemaTooNew(
            f"The store has schema version {found}, and this Perdure knows only up to {VERSION}.",
            "Upgrade Perdure on this machine; a newer one has migrated the store.",
        )


def schema_status() -> Verb[SchemaStatus]:
    found = yield Call("schema", ("",))
    return SchemaStatus(found=found, wanted=VERSION)
