"""Turns what the driver raises into Perdure's errors, and says whether trying again can help.

Nothing of the driver leaves the engine, and no message holds more of the server's than what it said itself: passwords
are not among that.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import psycopg

from perdure.errors import (
    BadOption,
    EngineBusy,
    EngineError,
    EngineFull,
    EngineUnreachable,
    EngineUnusable,
    PerdureError,
)

Kind = Literal[
    "contention",
    "collision",
    "lost",
    "read-only",
    "unreachable",
    "denied",
    "no right",
    "full",
    "busy",
    "refused",
    "own",
]
"""contention: rolled back for others' sake, try again · collision: a unique key was taken meanwhile · lost: the
connection broke in the middle, and nobody knows what became of the call · read-only: the server takes no changes now ·
unreachable: there is no connection · denied: the server does not let us in, and will not the next time · no right: the
role lacks a right · full: no room · busy: it took too long · refused: anything else the server says · own: not the
driver's."""

_CONTENTION = frozenset({"40001", "40P01", "55P03"})
_COLLISION = frozenset({"23505"})
_READ_ONLY = frozenset({"25006"})
_FULL = frozenset({"53100", "53200", "53400", "54000"})
_BUSY = frozenset({"57014", "53300", "25P03", "25P04"})
_NO_RIGHT = frozenset({"42501"})
_LOST = frozenset({"57P01", "57P02", "57P03", "57P05", "08000", "08003", "08006", "08P01"})


_DENIALS = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    "permission denied for database",
    "server does not support SSL",
)
"""What a refusal to let us in says. The driver knows no code for an error of connecting, only the server's text."""
_MISSING = ('role "', 'database "')


class TookTooLongError(Exception):
    """A call went past its deadline; its connection cannot be used any more."""


class NoConnectionError(Exception):
    """No connection could be made; the cause says why."""


def kind_of(error: BaseException) -> Kind:
    """What went wrong, as far as it matters for what to do."""
    if isinstance(error, NoConnectionError):
        return "denied" if _is_denial(error) else "unreachable"
    if isinstance(error, TookTooLongError):
        return "busy"
    if not isinstance(error, psycopg.Error):
        return "lost" if isinstance(error, OSError) else "own"
    state = error.sqlstate
    for kind, states in _KINDS.items():
        if state in states:
            return kind
    if state is None and isinstance(error, psycopg.OperationalError):
        return "lost"
    return "refused"


_KINDS: dict[Kind, frozenset[str]] = {
    "contention": _CONTENTION,
    "collision": _COLLISION,
    "read-only": _READ_ONLY,
    "full": _FULL,
    "busy": _BUSY,
    "no right": _NO_RIGHT,
    "lost": _LOST,
}


def to_perdure_error(error: BaseException, where: str) -> BaseException:
    """What the caller should see instead of `error`; `where` names the store. Perdure's own errors stay as they are."""
    if isinstance(error, PerdureError | asyncio.CancelledError):
        return error
    if isinstance(error, UnicodeError):
        return BadOption("A text holds half of a surrogate pair, which cannot be stored.", "Give valid Unicode text.")
    kind = kind_of(error)
    if kind == "own":
        return error
    return _errors(kind, _said(error), where)


def _is_denial(error: NoConnectionError) -> bool:
    # A server that speaks another language is waited for: its words, which the log shows, say why.
    text = str(error.__cause__)
    is_missing = "does not exist" in text and any(f"FATAL:  {what}" in text for what in _MISSING)
    return is_missing or any(words in text for words in _DENIALS)


def _errors(kind: Kind, said: str, where: str) -> EngineError:
    match kind:
        case "unreachable":
            return EngineUnreachable(
                f"There is no connection to {where} ({said}).",
                "Check that the server runs, and the host, port, database and user of the store's URL.",
            )
        case "denied":
            return EngineUnusable(
                f"There is no connection to {where} ({said}).",
                "Check the user, password and database of the store's URL, and what the server lets this user do.",
            )
        case "lost":
            return EngineUnreachable(
                f"The connection to {where} broke ({said}).",
                "It is made again by itself; what was asked may or may not have been done, and may be asked again.",
            )
        case "read-only":
            return EngineUnreachable(
                f"There is nothing to be changed in {where} at present ({said}).",
                "The server is a standby, or set read-only; with several hosts in the URL, add"
                " target_session_attrs=read-write.",
            )
        case "full":
            return EngineFull(
                f"There is no room to store anything more in {where} ({said}).",
                "Free disk space or memory on the server; the store goes on by itself then, and nothing is lost.",
            )
        case "busy":
            return EngineBusy(
                f"The answer of {where} took too long ({said}).",
                "Look for long transactions and locks on the server; the same call may be tried again.",
            )
        case "no right":
            return EngineUnreachable(
                f"The role of the store's URL may not do that in {where} ({said}).",
                "Grant it what docs/postgres.md lists under Rights; `perdure doctor` says what is missing.",
            )
        case "contention" | "collision":
            return EngineBusy(
                f"Others were in the way again and again in {where} ({said}).", "The same call may be tried again."
            )
        case _:
            return EngineError(
                f"A statement was refused by {where} ({said}).",
                "If Perdure's schema is current and its user owns it, this is a defect; please report it.",
            )


def _said(error: BaseException) -> str:
    """The first line of what was said, with its code."""
    cause = error.__cause__ if isinstance(error, NoConnectionError) and error.__cause__ else error
    text = (str(cause).strip().splitlines() or [""])[0][:300]
    state = getattr(cause, "sqlstate", None)
    return f"{type(cause).__name__}{f' {state}' if state else ''}: {text}" if text else type(cause).__name__
