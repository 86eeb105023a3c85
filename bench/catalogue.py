"""Who is measured: each peer's package and version, how its worker is started, and which settings were chosen and why.

Common to all: the server is the same, PostgreSQL with `synchronous_commit` on, Redis with an append-only file synced
every second, SQLite with `synchronous=FULL` where the peer lets it be set. A worker is one process of one Python.
`pace` is roughly how many jobs a second the peer does; it only bounds how many jobs a measurement is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

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
    checkout: Path | None = None
    """Another checkout of Perdure, whose own `.venv` runs it."""
    worker: tuple[str, ...] = ()
    """The arguments of Python that start a worker; nothing: the adapter's `work`."""
    pace: Mapping[str, int] = field(default_factory=dict)
    keeps: bool = True
    """Whether a job survives a worker that is killed while it runs it, as set up here."""
    lax: tuple[str, ...] = ()
    """The engines on which an accepted job may not survive a loss of power, and it cannot be told otherwise."""
    plain: bool = False
    """Whether its handlers are plain functions; the same one then stands for both kinds."""
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


def before(checkout: Path) -> Peer:
    """Perdure as it is in another checkout, to be measured in turn with this one."""
    return replace(PERDURE, name="before", checkout=checkout, note=f"Perdure of the checkout {checkout.name}")


RAW = Peer(
    name="raw",
    module="raw_{engine}",
    engines=ENGINES,
    note="one thread, batches of 500 to 1,000; completes a batch and claims the next in one go; no retries, no leases",
)
PGQUEUER = Peer(
    name="pgqueuer",
    engines=(POSTGRES,),
    packages=("pgqueuer[asyncpg,cli]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
    pace={POSTGRES: 8000},
    note="asyncpg, uvloop, claims and completions of 500; blocking code by asyncio.to_thread, as it advises",
)
AWA = Peer(
    name="awa",
    engines=(POSTGRES,),
    packages=("awa-pg==0.6.9",),
    pace={POSTGRES: 4000},
    note="200 workers, COPY for bulk, polls and promotes every 50 ms; fail twice by RetryAfter(0)",
)
FLEXIQ = Peer(
    name="flexiq",
    engines=ENGINES,
    packages=("flexiq==2.1.0", "cbor2==6.2.1", "cloudpickle==3.1.2", "msgpack==1.2.4"),
    worker=("-m", "flexiq.cli", "worker", "--app", "bench.peers.flexiq:queue"),
    pace={SQLITE: 700, POSTGRES: 400, REDIS: 800},
    lax=(SQLITE,),
    note="the best found for each engine: on SQLite and PostgreSQL 8 threads, claims of 16, polls every 1 ms; on Redis"
    " 500 threads with push dispatch, its default there; its SQLite is fixed at synchronous=NORMAL",
)
HUEY = Peer(
    name="huey",
    engines=ENGINES,
    packages=("huey==3.5.4", "redis[hiredis]==8.1.0", "psycopg[binary]==3.3.8"),
    worker=(
        *("-m", "huey.bin.huey_consumer", "bench.peers.huey.huey", "-k", "process", "-w", "1"),
        *("-d", "0.005", "-m", "0.005", "-n", "-q"),
    ),
    pace={SQLITE: 1500, POSTGRES: 1000, REDIS: 1600},
    keeps=False,
    plain=True,
    note="one worker process beside the consumer's own, polls every 5 ms; takes a job off the queue before it runs it",
)
DRAMATIQ = Peer(
    name="dramatiq",
    engines=(REDIS,),
    packages=("dramatiq[redis]==2.2.1", "redis[hiredis]==8.1.0"),
    worker=("-m", "dramatiq", "bench.peers.dramatiq", "--processes", "1", "--threads", "8"),
    pace={REDIS: 2000},
    plain=True,
    note="one process, 8 threads (its default), prefetch 2 a thread (its default)",
)
PROCRASTINATE = Peer(
    name="procrastinate",
    engines=(POSTGRES,),
    packages=("procrastinate==3.10.0", "psycopg[binary]==3.3.8"),
    worker=("-m", "procrastinate", "--app", "bench.peers.procrastinate.app", "worker", "--concurrency", "50"),
    pace={POSTGRES: 450},
    note="50 at once, as Perdure",
)
CHANCY = Peer(
    name="chancy",
    engines=(POSTGRES,),
    packages=("chancy==0.26.0", "psycopg[binary]==3.3.8"),
    pace={POSTGRES: 1500},
    note="asynchronous executor, 50 at once, eager polling",
)
OBAN = Peer(
    name="oban",
    engines=(POSTGRES,),
    packages=("oban==0.7.0", "psycopg[binary]==3.3.8"),
    python="3.12",
    pace={POSTGRES: 1000},
    note="Python 3.12, which it needs; 50 at once, stages every 100 ms",
)
SAQ = Peer(
    name="saq",
    engines=(POSTGRES, REDIS),
    packages=("saq[redis,postgres]==0.26.4", "redis[hiredis]==7.4.1", "psycopg[binary]==3.3.8"),
    worker=("-m", "saq", "bench.peers.saq.settings", "--quiet"),
    pace={POSTGRES: 450, REDIS: 900},
    note="50 at once; has no call for many",
)
TASKIQ = Peer(
    name="taskiq",
    engines=(REDIS,),
    packages=("taskiq-redis==1.2.4", "taskiq==0.13.0", "redis[hiredis]==8.1.0"),
    worker=(
        *("-m", "taskiq", "worker", "bench.peers.taskiq:broker", "--workers", "1", "--max-async-tasks", "50"),
        *("--max-prefetch", "100", "--log-level", "WARNING"),
    ),
    pace={REDIS: 1700},
    note="stream broker, one worker process beside its own, 50 at once, reads and prefetches 100; due jobs need a"
    " scheduler of their own, left out",
)
ARQ = Peer(
    name="arq",
    engines=(REDIS,),
    packages=("arq==0.28.0", "redis[hiredis]==5.3.1"),
    worker=("-m", "arq", "bench.peers.arq.WorkerSettings"),
    pace={REDIS: 900},
    note="50 at once, polls every 10 ms, keeps no results; has no call for many",
)
CELERY = Peer(
    name="celery",
    engines=(REDIS,),
    packages=("celery[redis]==5.7.0", "kombu==5.7.0", "redis[hiredis]==8.1.0"),
    worker=(
        *("-m", "celery", "-A", "bench.peers.celery", "worker", "--concurrency", "1", "--loglevel", "ERROR"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ),
    pace={REDIS: 600},
    keeps=False,
    plain=True,
    note="one pool process beside the worker's own, prefetch 64, no results; acknowledges before it runs, its default",
)
STREAQ = Peer(
    name="streaq",
    engines=(REDIS,),
    packages=("streaq==7.2.0", "coredis==6.9.0"),
    worker=("-m", "streaq", "run", "bench.peers.streaq:worker"),
    pace={REDIS: 700},
    note="50 at once, keeps no results",
)
RQ = Peer(
    name="rq",
    engines=(REDIS,),
    packages=("rq==2.12.0", "redis[hiredis]==8.1.0"),
    pace={REDIS: 350},
    plain=True,
    note="simple worker, which does not fork for each job, with scheduler; keeps no results",
)
PEERS: tuple[Peer, ...] = (
    *(PGQUEUER, AWA, FLEXIQ, HUEY, DRAMATIQ, PROCRASTINATE),
    *(CHANCY, OBAN, SAQ, TASKIQ, ARQ, CELERY, STREAQ, RQ),
)

EVERYBODY = (PERDURE, RAW, *PEERS)
