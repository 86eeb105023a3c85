"""Finds an engine's numbered migrations and says what a store of some version needs."""

from __future__ import annotations

import functools
import re
from importlib.resources import files

import msgspec

from perdure.errors import SchemaTooNew, SchemaTooOld

_NAME = re.compile(r"([0-9]{3})_\w+\.sql")


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One step from a version of the schema to the next."""

    version: int
    text: str


@functools.cache
def migrations(package: str) -> tuple[Migration, ...]:
    """The migrations in `sql/migrations` of an engine's package, oldest first, numbered without gaps."""
    found = []
    for file in files(package).joinpath("sql", "migrations").iterdir():
        if name := _NAME.fullmatch(file.name):
            found.append(Migration(version=int(name[1]), text=file.read_text(encoding="utf-8")))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"the migrations of {package} are not numbered 1, 2, 3…")
    return tuple(found)


def wanted_version(package: str) -> int:
    """The version of the schema that this Perdure works with."""
    return len(migrations(package))


def missing(package: str, found: int, *, auto_migrate: bool) -> tuple[Migration, ...]:
    """The migrations that a store of version `found` needs; refuses newer stores, and older ones unless asked."""
    wanted = wanted_version(package)
    if found > wanted:
        raise SchemaTooNew(
            f"The store has schema version {found}, and this Perdure knows only up to {wanted}.",
            "Upgrade Perdure on this machine; a newer one has migrated the store.",
        )
    if found < wanted and not auto_migrate:
        raise SchemaTooOld(
            f"The store has schema version {found}, and this Perdure needs {wanted}.",
            "Run `perdure db migrate`, or open the app with auto_migrate=True.",
        )
    return migrations(package)[found:]
