"""What an engine can do, said as data with the reason where it cannot."""

from __future__ import annotations

import msgspec


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What this engine can do."""

    engine: str
    """`sqlite`, `postgres` or `redis`."""
    version: str
    durability: str
    """What survives what, in one sentence."""
    has_caller_transactions: bool
    is_shared: bool
    """Whether other processes can open the same store."""
    is_embedded: bool = False
    """Whether the engine itself works in threads of this process."""
    warnings: tuple[str, ...] = ()
    """What `perdure doctor` should tell about this engine as it was found."""
    problems: tuple[str, ...] = ()
    """What somebody has to mend, such as rights that the store's user lacks; `perdure doctor` fails with them."""
