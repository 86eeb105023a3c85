"""Opens the store that a URL names; the only place that knows which engine has which scheme."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from perdure.engines.migrator import migrations
from perdure.errors import BadSetting, Unsupported
from perdure.store import Store
from perdure.system.clock import Clock

Opener = Callable[[str, Clock, bool | None, bool], Store]
"""Takes what follows `scheme://`, the clock, auto_migrate and is_inline."""

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://(.*)", re.DOTALL)
_EXAMPLES = (
    "Examples: sqlite:///perdure.db (in the working directory), sqlite:////var/lib/app/perdure.db (an absolute path),"
    " sqlite:// (in memory), postgresql://user:secret@db.example/app, redis://redis.example:6379/0."
)


def open_store(url: str, *, clock: Clock, auto_migrate: bool | None = None, is_inline: bool = False) -> Store:
    """The open store of a URL.

    `auto_migrate` None leaves it to the engine: SQLite migrates itself, servers do not. `is_inline` keeps all work in
    the calling thread.
    """
    scheme, rest = _split(url)
    return OPENERS[scheme](rest, clock, auto_migrate, is_inline)


def schema_sql(url: str) -> str:
    """The statements that make the schema of a URL's engine; the store itself is not looked at."""
    scheme, rest = _split(url)
    return SCHEMAS[scheme](rest)


def _split(url: str) -> tuple[str, str]:
    """A URL's scheme, which is a known one, and the rest."""
    # The URL itself never gets into an error: it may hold a password.
    parts = _SCHEME.fullmatch(url)
    if parts is None:
        raise BadSetting("The store's URL has no scheme.", _EXAMPLES)
    scheme, rest = parts[1].lower(), parts[2]
    if scheme not in OPENERS:
        known = ", ".join(f"{name}://" for name in OPENERS)
        raise BadSetting(f"The store's URL begins with {scheme}://, which is none of {known}.", _EXAMPLES)
    return scheme, rest


def _open_sqlite(rest: str, clock: Clock, auto_migrate: bool | None, is_inline: bool) -> Store:
    if rest and not rest.startswith("/"):
        raise BadSetting("The store's URL has two slashes before the file's name; it takes three.", _EXAMPLES)
    if "?" in rest or "#" in rest:
        raise BadSetting("The store's URL has options after the file's name, and SQLite takes none.", _EXAMPLES)
    path = rest[1:]
    if path.endswith("/"):
        raise BadSetting("The store's URL names a directory, not a file.", _EXAMPLES)
    in_memory = path in ("", ":memory:")
    from perdure.engines.sqlite.store import open_sqlite  # the driver is loaded by those who use it

    return open_sqlite(
        None if in_memory else path,
        clock,
        auto_migrate=True if auto_migrate is None else auto_migrate,
        is_inline=is_inline,
    )


def _open_postgres(rest: str, clock: Clock, auto_migrate: bool | None, is_inline: bool) -> Store:
    _require_psycopg()
    from perdure.engines.postgres.store import open_postgres

    return open_postgres(rest, clock, auto_migrate=bool(auto_migrate), is_inline=is_inline)


def _sqlite_schema(rest: str) -> str:
    return "\n".join(migration.text for migration in migrations("perdure.engines.sqlite"))


def _postgres_schema(rest: str) -> str:
    _require_psycopg()
    from perdure.engines.postgres.address import read_address
    from perdure.engines.postgres.schema import schema_sql as postgres_schema

    return postgres_schema(read_address(rest).schema)


def _no_schema(rest: str) -> str:
    raise Unsupported("This engine has no schema.", "There is nothing to prepare: open the store and use it.")


def _require_psycopg() -> None:
    try:
        import psycopg  # noqa: F401 - the driver is loaded by those who use it
    except ImportError as error:
        raise Unsupported(
            "The store's URL names PostgreSQL, and its driver psycopg is not installed or finds no libpq.",
            "Run: pip install perdure[postgres]",
        ) from error


def _open_redis(rest: str, clock: Clock, auto_migrate: bool | None, is_inline: bool, *, is_tls: bool) -> Store:
    # Keys need no migration before they are used, so there is nothing to ask about.
    try:
        import hiredis  # noqa: F401 - the driver is loaded by those who use it
    except ImportError as error:
        raise Unsupported(
            "The store's URL names Redis, and its driver is not installed.", "Run: pip install perdure[redis]"
        ) from error
    from perdure.engines.redis.store import open_redis

    return open_redis(rest, clock, is_tls=is_tls, is_inline=is_inline)


OPENERS: Mapping[str, Opener] = MappingProxyType(
    {
        "sqlite": _open_sqlite,
        "postgres": _open_postgres,
        "postgresql": _open_postgres,
        "redis": functools.partial(_open_redis, is_tls=False),
        "rediss": functools.partial(_open_redis, is_tls=True),
        "valkey": functools.partial(_open_redis, is_tls=False),
    }
)

SCHEMAS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "sqlite": _sqlite_schema,
        "postgres": _postgres_schema,
        "postgresql": _postgres_schema,
        "redis": _no_schema,
        "rediss": _no_schema,
        "valkey": _no_schema,
    }
)
