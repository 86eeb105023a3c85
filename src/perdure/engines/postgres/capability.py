"""What the PostgreSQL engine can do, and what should be known about the server it was found with."""

from __future__ import annotations

from perdure.engines.postgres.address import Address
from perdure.engines.postgres.rights import lacking, rights_step
from perdure.engines.postgres.verb import Row, Script, Step, Verb
from perdure.errors import EngineUnusable
from perdure.store.capability import Capabilities

OLDEST = 160000
"""The oldest supported server, as `server_version_num` gives it; the oldest that the tests run on."""


def look(address: Address) -> Verb[Capabilities]:
    """The capabilities of the server at the other end."""
    return Verb(lambda: _look(address), is_repeatable=True)


def _look(address: Address) -> Script[Capabilities]:
    (row,) = yield Step("capability")
    version, number = row[0], row[1]
    if number < OLDEST:
        raise EngineUnusable(
            f"The server is PostgreSQL {version}, and Perdure needs {OLDEST // 10000} or newer.",
            "Use a newer server.",
        )
    lack = lacking((yield rights_step(address.schema)), address.schema)
    return Capabilities(
        engine="postgres",
        version=version,
        durability=_durability(row),
        has_caller_transactions=True,
        is_shared=True,
        warnings=_warnings(row, address),
        problems=() if lack is None else (lack,),
    )


def _durability(row: Row) -> str:
    _, _, synchronous, fsync, _ = row
    if fsync == "off":
        return "What was answered survives a crash of programs, but not of the server's machine: fsync is off."
    if synchronous == "off":
        return "What was answered survives crashes, but the last moments may be lost: synchronous_commit is off."
    return f"What was answered survives crashes and power loss of the server: synchronous_commit is {synchronous}."


def _warnings(row: Row, address: Address) -> tuple[str, ...]:
    _, _, synchronous, fsync, is_standby = row
    found = []
    if fsync == "off":
        found.append("The server's fsync is off: after a power loss its data may be damaged beyond repair.")
    if synchronous == "off":
        found.append(
            "The server's synchronous_commit is off: after a crash, jobs of the last moments are gone, though answered."
        )
    if is_standby:
        found.append("The server is a standby: it can be looked at, but takes no jobs.")
    if not address.has_hints or address.has_pooler:
        found.append("No wake-ups are listened for: new jobs are found at the next poll.")
    return tuple(found)
