"""Turns what the driver and the server say into Perdure's errors, so that no exception of theirs leaves the engine."""

from __future__ import annotations

import asyncio
import re
from typing import Literal

from perdure.engines.redis.wire import DeniedError, ServerError
from perdure.errors import (
    BadOption,
    EngineBusy,
    EngineDamaged,
    EngineError,
    EngineFull,
    EngineUnreachable,
    EngineUnusable,
    PerdureError,
)

Kind = Literal[
    "lost", "late", "loading", "denied", "read-only", "full", "busy", "asked too much", "damaged", "refused", "own"
]
"""lost: there is no connection, or it broke, and nobody knows what became of the call · late: no answer in time, the
same · loading: the server is starting · denied: it does not let us in · read-only: it takes no changes now · full: no
room · busy: a script runs for too long · asked too much: our own scripts refused an argument · damaged: a key holds a
value of another type · refused: anything else that the server says · own: not the driver's."""

IN_DOUBT = ("lost", "late")

_SAID: tuple[tuple[str, Kind], ...] = (
    ("PERDURE ", "asked too much"),
    ("READONLY ", "read-only"),
    ("NOREPLICAS ", "read-only"),
    ("OOM ", "full"),
    ("MISCONF ", "full"),
    ("LOADING ", "loading"),
    ("BUSY ", "busy"),
    ("NOPERM ", "denied"),
    ("NOAUTH ", "denied"),
    ("MASTERDOWN ", "lost"),
    ("CLUSTERDOWN ", "lost"),
    ("TRYAGAIN ", "lost"),
    # The server became a replica while this call was blocked, for example in WAIT: the change may have been made.
    ("UNBLOCKED ", "lost"),
    ("WRONGTYPE ", "damaged"),
)


WRONG_KEY = re.compile(r"the key (.+) holds a (\w+), not a (\w+)", re.DOTALL)
"""What fragments/start.lua says about a key of another type."""


class NotConfirmedError(Exception):
    """The server did a change, and not as many copies of it were confirmed in time as the URL asks for."""


def kind_of(error: BaseException) -> Kind:
    """What went wrong, as far as it matters for what to do."""
    if isinstance(error, TimeoutError | NotConfirmedError):
        return "late"
    if isinstance(error, DeniedError):
        return "denied"
    if isinstance(error, ServerError):
        said = str(error)
        if WRONG_KEY.search(said):
            return "damaged"
        # Inside a script's error older servers put the code somewhere in the middle.
        return next((kind for code, kind in _SAID if said.startswith(code) or f"-{code}" in said), "refused")
    return "lost" if isinstance(error, OSError) else "own"


def to_perdure_error(error: BaseException, where: str) -> BaseException:
    """What the caller should see instead of `error`; `where` names the server. Perdure's own errors stay."""
    if isinstance(error, PerdureError | asyncio.CancelledError):
        return error
    if isinstance(error, UnicodeError):
        return BadOption("A text holds half of a surrogate pair, which cannot be stored.", "Give valid Unicode text.")
    kind = kind_of(error)
    if kind == "own":
        return error
    text = (str(error).strip().splitlines() or [""])[0][:300]
    if kind == "asked too much":
        return BadOption(text.removeprefix("PERDURE "))
    if kind == "damaged":
        return _damaged(str(error), where)
    return _engine_error(kind, f"{type(error).__name__}: {text}" if text else type(error).__name__, where)


def _damaged(said: str, where: str) -> EngineDamaged:
    """The error for a key of another type; the scripts look at all keys before their first write."""
    found = WRONG_KEY.search(said)
    key = "A key of the store" if found is None else f"The key {found[1][:200]}"
    what = "a value of another type than Perdure keeps there" if found is None else f"a {found[2]}, not a {found[3]}"
    return EngineDamaged(
        f"{key} on {where} holds {what}; this call changed nothing.",
        "`perdure doctor` names such keys. Find out who wrote the value, and rename or delete the key; then run"
        " `perdure doctor --repair`.",
    )


def _engine_error(kind: Kind, said: str, where: str) -> EngineError:
    match kind:
        case "lost":
            return EngineUnreachable(
                f"There is no connection to {where}, or it broke ({said}).",
                "Check that the server runs. The connection is made again by itself; what was asked may or may not have"
                " been done, and may be asked again.",
            )
        case "late":
            return EngineBusy(
                f"The answer of {where} took too long ({said}).",
                "What was asked may or may not have been done, and may be asked again.",
            )
        case "loading":
            return EngineUnreachable(
                f"There is no answer from {where} yet: it is loading its data ({said}).",
                "Wait until it has; nothing was done by this call.",
            )
        case "denied":
            return EngineUnusable(
                f"The user of the store's URL may not do that on {where} ({said}).",
                "Check user and password, and its ACL: it needs the commands that docs/redis.md lists under Rights, and"
                " all keys and channels that begin with the store's prefix.",
            )
        case "read-only":
            return EngineUnreachable(
                f"There is nothing to be changed on {where} at present ({said}).",
                "It has become a replica, or misses its own; connections are made anew, so that they may lead to the"
                " new primary.",
            )
        case "full":
            return EngineFull(
                f"There is no room to store anything more on {where} ({said}).",
                "Give the server more memory or disk, or prune ended jobs; it goes on by itself then, and nothing"
                " stored is lost.",
            )
        case "busy":
            return EngineBusy(
                f"Another client's script keeps {where} from answering ({said}).", "The same call may be tried again."
            )
        case _:
            return EngineError(
                f"A script was refused by {where} ({said}).",
                "If nobody else writes to keys with the store's prefix, this is a defect; please report it.",
            )
