"""Who is measured: each peer's package and version, how its worker is started, and which settings were chosen and why.

Common to all: the server is the same, PostgreSQL with `synchronous_commit` on, Redis with an append-only file synced
every second, SQLite with `synchronous=FULL` where the peer lets it be set. A worker is one process of one Python.
`pace` is roughly how many jobs a second the peer does; it only bounds how many jobs a measurement is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SQLITE, POSTGRES, REDIS = "sqlite", "postgres", "redis"
ENGINES = (SQLITE, POSTGRES, REDIS)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One way to run jobs."""

    name: str
    engines: tuple[str, ...]
    module: str | None = None
    """The adapter in `bench.peers`, if it is not named after the peer; `{engine}` stands for the engine."""
    packages: tuple[str, ...] = ()
    """What its environment holds, pinned; nothing: the project's own environment."""
    python: str | None = None
    """The Python it needs, if not this one."""
    worker: tuple[str, ...] = ()
    """The arguments of Python that start a worker; nothing: the adapter's `work`."""
    pace: Mapping[str, int] = field(default_factory=dict)
    keeps: bool = True
    """Whether a job survives a worker that is killed while it runs it, as set up here."""
    durable: bool = True
    """Whether an accepted job survives a loss of power, as far as the server allows."""
    note: str = ""

    def adapter(self, engine: str) -> str:
        """The name of the adapter's module for that engine."""
        return (self.module or self.name).format(engine=engine)

    def jobs(self, engine: str, wanted: int, seconds: float) -> int:
        """How many jobs to measure with, so that it takes about so many seconds."""
        pace = self.pace.get(engine)
        return wanted if pace is None else max(20, min(wanted, int(pace * seconds)))


PERDURE = Peer(
    name="perdure",
    module="perdure_",
    engines=ENGINES,
    worker=("-m", "perdure", "worker", "bench.peers.perdure_:app"),
    note="all defaults (50 slots)",
)
RAW = Peer(
    name="raw",
    module="raw_{engine}",
    engines=ENGINES,
    note="one thread, batches of 500 to 1,000; completes a batch and claims the next in one go; no retries, no leases",
)
PEERS: tuple[Peer, ...] = ()

EVERYBODY = (PERDURE, RAW, *PEERS)
