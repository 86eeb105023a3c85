"""Who may do what: bearer tokens with scopes, and what holds when there is no token at all.

A token is known by its SHA-256 only. Scopes: `read` looks, without arguments and results; `args` looks at those, too;
`enqueue` makes jobs; `write` reads, makes jobs and does all that operators do to jobs and queues; `admin` does
everything. Without any token the API is for programs on this machine alone, as `this_machine` says.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

import msgspec
from starlette.requests import HTTPConnection

from perdure.configuration.settings import Settings
from perdure.errors import BadSetting, Refused
from perdure.web.access.this_machine import is_loopback, refusal
from perdure.web.problems import Failed

Scope = Literal["read", "args", "enqueue", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

GRANTS: Mapping[Scope, frozenset[Scope]] = MappingProxyType(
    {
        "read": frozenset({"read"}),
        "args": frozenset({"read", "args"}),
        "enqueue": frozenset({"enqueue"}),
        "write": frozenset({"read", "enqueue", "write"}),
        "admin": frozenset(SCOPES),
    }
)
"""What each scope allows."""

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")

_ENTRY = re.compile(r"(?:([a-z+]+):)?sha256:([0-9a-f]{64})")
_PLAIN = re.compile(r"(?:([a-z+]+):)?([A-Za-z0-9._~+/=-]{16,200})")
_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/=-]{1,200}) *")
_FORM = (
    "Write SCOPES:sha256:HASH as `perdure token new` prints it, or SCOPES:SECRET with a secret of at least 16 "
    f"letters and digits; scopes are {', '.join(SCOPES)}, several with + between."
)


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What the server knows of a token: its hash and what it allows."""

    digest: str
    allows: frozenset[Scope]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use the API."""

    tokens: tuple[Token, ...] = ()
    hosts: tuple[str, ...] = ()
    """Host names that requests may name beside the loopback ones; `*` is any."""
    is_guarded_outside: bool = False
    """The program that the API is mounted in lets in only those who may do everything."""

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a token, so that only this machine may ask."""
        return not self.tokens and not self.is_guarded_outside


def read_access(settings: Settings, more: Sequence[str] = ()) -> Access:
    """The tokens and hosts of the settings, and tokens given on the command line."""
    entries = [*(settings.tokens or ()), *more]
    if settings.token_file is not None:
        entries += _read_file(Path(settings.token_file))
    return Access(tokens=read_tokens(entries), hosts=tuple(name.lower() for name in settings.hosts or ()))


def read_tokens(entries: Iterable[str]) -> tuple[Token, ...]:
    """The tokens that these entries name."""
    return tuple(_read_token(entry.strip()) for entry in entries)


def new_token(scopes: Sequence[Scope]) -> tuple[str, str]:
    """A new secret, and the entry for PERDURE_TOKENS that knows it by its hash."""
    secret = f"pdr_{secrets.token_urlsafe(32)}"
    return secret, f"{'+'.join(dict.fromkeys(scopes))}:sha256:{_digest(secret)}"


def read_scopes(text: str, separator: str = "+") -> list[Scope]:
    """Scopes by their names."""
    found: list[Scope] = []
    for name in text.split(separator):
        scope = next((scope for scope in SCOPES if scope == name.strip()), None)
        if scope is None:
            raise BadSetting(f"{name.strip()[:40]!r} is no scope.", f"Scopes are {', '.join(SCOPES)}.")
        found.append(scope)
    return found


def require(access: Access, connection: HTTPConnection, scope: Scope) -> None:
    """Let the request pass if it may do what needs this scope; else end it with 401 or 403."""
    if not allows(access, connection, scope):
        raise Failed(
            "forbidden",
            f"This token does not have the scope {scope!r}, which this request needs.",
            headers={"WWW-Authenticate": f'Bearer realm="perdure", error="insufficient_scope", scope="{scope}"'},
        )


def allows(access: Access, connection: HTTPConnection, scope: Scope) -> bool:
    """Whether the request may do what needs this scope; ends it with 401 or 403 if it may do nothing at all."""
    if access.is_guarded_outside:
        return True
    if not access.tokens:
        _require_this_machine(connection)
        return True
    return scope in _allowed(access, connection.headers.getlist("authorization"))


def caller_of(connection: HTTPConnection) -> str:
    """A text that is the same for every request with the same token, however its header is spelt."""
    given = connection.headers.getlist("authorization")
    token = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    if token is not None:
        return f"token {_digest(token[1])}"
    return "\n".join(text.strip() for text in given)


def require_binding(access: Access, host: str) -> None:
    """Refuse to listen where others can reach an API that asks for no token."""
    if access.is_open and not is_loopback(host):
        raise Refused(
            f"Without a token the API listens on this machine only, and {host!r} can be reached from outside.",
            "Make a token with `perdure token new` and give it in PERDURE_TOKENS, or leave out --host.",
        )


def _read_token(entry: str) -> Token:
    found = _ENTRY.fullmatch(entry)
    if found is not None:
        scopes, digest = found[1], found[2]
    else:
        plain = None if "sha256:" in entry else _PLAIN.fullmatch(entry)
        if plain is None:
            # The entry itself is not shown: it may be a secret with a slip in it.
            raise BadSetting("A token of the settings cannot be read.", _FORM)
        scopes, digest = plain[1], _digest(plain[2])
    granted: frozenset[Scope] = frozenset()
    for scope in read_scopes(scopes or "admin"):
        granted |= GRANTS[scope]
    return Token(digest=digest, allows=granted)


def _read_file(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadSetting(f"The token file {path} cannot be read: {reason}.") from None
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        # An empty file must not open the API to everybody on this machine unnoticed.
        raise BadSetting(f"The token file {path} holds no token.", _FORM)
    return found


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _allowed(access: Access, headers: list[str]) -> frozenset[Scope]:
    challenge = {"WWW-Authenticate": 'Bearer realm="perdure"'}
    if not headers:
        raise Failed("unauthorized", "This server needs a token: Authorization: Bearer TOKEN.", headers=challenge)
    given = _BEARER.fullmatch(headers[0]) if len(headers) == 1 else None
    if given is None:
        raise Failed("unauthorized", "The Authorization header is not of the form: Bearer TOKEN.", headers=challenge)
    digest = _digest(given[1])
    found: frozenset[Scope] = frozenset()
    # Every token is compared, so that the time taken tells nothing about which ones there are.
    for token in access.tokens:
        if hmac.compare_digest(token.digest, digest):
            found |= token.allows
    if not found:
        challenge = {"WWW-Authenticate": 'Bearer realm="perdure", error="invalid_token"'}
        raise Failed("unauthorized", "This server does not know this token.", headers=challenge)
    return found


def _require_this_machine(connection: HTTPConnection) -> None:
    why = refusal(connection)
    if why is not None:
        raise Failed(
            "forbidden",
            f"No token is set up, so this server answers programs on its own machine only, and {why}. "
            "Make a token with `perdure token new` and set PERDURE_TOKENS.",
        )
