"""Reads the URL of a PostgreSQL store: what belongs to the driver, and what to Perdure.

Perdure's own options after the `?` are `schema`, `pooler`, `listen`, `connections` and `timeout`; all others are
libpq's. No part of the URL gets into an error: it may hold a password.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from perdure.engines.userinfo import encode_userinfo, shown
from perdure.errors import BadSetting
from perdure.text.credentials import Discreet

EXAMPLES = (
    "Examples: postgresql://user:secret@db.example/app, postgresql:///app?host=/run/postgresql,"
    " postgresql://db.example/app?schema=jobs&pooler=true."
)

_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_$-]*", re.ASCII)
_LONGEST_NAME = 63
_WORDS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_ENOUGH = 4
"""With so many connections those that keep plans can be a kind of their own."""
_OWN = ("schema", "pooler", "listen", "connections", "timeout")

_DRIVER_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "application_name": "perdure",
    # A peer that is gone without a word is noticed within half a minute, idle or not.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class Address(Discreet, msgspec.Struct, frozen=True, kw_only=True):
    """Where a store is, and how to talk to it."""

    _secrets = frozenset(("driver",))

    driver: dict[str, Any]
    """What the driver needs to connect; holds the password."""
    schema: str = "perdure"
    has_pooler: bool = False
    """Whether a pooler in transaction mode stands between: then there is nobody to listen through."""
    has_hints: bool = True
    """Whether to wake other processes, and to listen for them."""
    connections: int = 8
    """The most connections of an event loop, and the most of all other threads together."""
    timeout: float = 15.0
    """How many seconds a call may take before it is given up."""

    @property
    def keeps_plans(self) -> bool:
        """Whether some connections are set apart for statements whose plans are kept."""
        # Two kinds of connections would take each other's places where there are few of them.
        return not self.has_pooler and self.connections >= _ENOUGH

    @property
    def name(self) -> str:
        """The store in words, without secrets."""
        host = self.driver.get("host") or self.driver.get("hostaddr") or "the local socket"
        port = f":{self.driver['port']}" if self.driver.get("port") else ""
        return f"the PostgreSQL database {self.driver.get('dbname') or 'of this user'} at {host}{port}"


def read_address(rest: str) -> Address:
    """The address in what follows `postgresql://`."""
    place, _, query = encode_userinfo(rest).partition("?")
    options = [option.partition("=") for option in query.split("&") if option]
    own = {name: unquote(value) for name, _, value in options if name in _OWN}
    # The driver gets the rest as it was written: it has its own idea of what + and % mean.
    others = "&".join("".join(option) for option in options if option[0] not in _OWN)
    try:
        driver = conninfo_to_dict(f"postgresql://{place}{'?' if others else ''}{others}")
    except psycopg.Error:
        raise BadSetting(
            "The store's URL cannot be read, or has an option that PostgreSQL does not know.", EXAMPLES
        ) from None
    return Address(
        driver={**_DRIVER_DEFAULTS, **driver},
        schema=_schema(own.get("schema", "perdure")),
        has_pooler=_switch("pooler", own.get("pooler", "false")),
        has_hints=_switch("listen", own.get("listen", "true")),
        connections=int(_number("connections", own.get("connections", "8"), 1, 1000)),
        timeout=_number("timeout", own.get("timeout", "15"), 0.1, 3600),
    )


def _schema(name: str) -> str:
    if not _SCHEMA.fullmatch(name) or len(name) > _LONGEST_NAME or name.startswith("pg_"):
        raise BadSetting(
            f"The option schema of the store's URL is {shown(name)}, which cannot be used.",
            f"Names have up to {_LONGEST_NAME} letters, digits, or any of _ $ -, and begin with a letter, not pg_.",
        )
    return name


def _switch(option: str, value: str) -> bool:
    found = _WORDS.get(value.lower())
    if found is None:
        raise BadSetting(f"The option {option} of the store's URL is {shown(value)}; it must be true or false.")
    return found


def _number(option: str, value: str, least: float, most: float) -> float:
    try:
        found = float(value)
    except ValueError:
        found = float("nan")
    if not least <= found <= most:
        raise BadSetting(
            f"The option {option} of the store's URL is {shown(value)}; it must be a number from {least:g} to {most:g}."
        )
    return found
