"""Opens the store that a URL names; the only place that knows which engine has which scheme."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from perdure.clock import Clock
from perdure.errors import BadSetting, Unsupported
from perdure.store import Store

Opener = Callable[[str, Clock, bool | None, bool], Store]
"""Takes what follows `scheme://`, the clock, auto_migrate and is_inline."""

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://(.*)", re.DOTALL)
_EXAMPLES = (
    "Examples: sqlite:///perdure.db (in the working directory), sqlite:////var/lib/app/perdure.db (an absolute path),"
    " sqlite:// (in memory), redis://redis.example:6379/0."
)


def open_store(url: str, *, clock: Clock, auto_migrate: bool | None = None, is_inline: bool = False) -> Store:
    """The open store of a URL.

    `auto_migrate` None leaves it to the engine: SQLite migrates itself. `is_inline` keeps all work in the calling
    thread.
    """
    # The URL itself never gets into an error: it may hold a password.
    parts = _SCHEME.fullmatch(url)
    if parts is None:
        raise BadSetting("The store's URL has no scheme.", _EXAMPLES)
    scheme, rest = parts[1].lower(), parts[2]
    opener = OPENERS.get(scheme)
    if opener is None:
        known = ", ".join(f"{name}://" for name in OPENERS)
        raise BadSetting(f"The store's URL begins with {scheme}://, which is none of {known}.", _EXAMPLES)
    return opener(rest, clock, auto_migrate, is_inline)


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


def _open_redis(rest: str, clock: Clock, auto_migrate: bool | None, is_inline: bool, *, is_tls: bool) -> Store:
    # Keys need no migration before they are used, so there is nothing to ask about.
    try:
        import redis  # noqa: F401 - the driver is loaded by those who use it
    except ImportError as error:
        raise Unsupported(
            "The store's URL names Redis, and its driver is not installed.", "Run: pip install perdure[redis]"
        ) from error
    from perdure.engines.redis.store import open_redis

    return open_redis(rest, clock, is_tls=is_tls, is_inline=is_inline)


def _not_here(rest: str, clock: Clock, auto_migrate: bool | None, is_inline: bool) -> Store:
    raise Unsupported("This version of Perdure has no engine for that kind of URL yet.", _EXAMPLES)


OPENERS: Mapping[str, Opener] = MappingProxyType(
    {
        "sqlite": _open_sqlite,
        "postgres": _not_here,
        "postgresql": _not_here,
        "redis": functools.partial(_open_redis, is_tls=False),
        "rediss": functools.partial(_open_redis, is_tls=True),
        "valkey": functools.partial(_open_redis, is_tls=False),
    }
)
