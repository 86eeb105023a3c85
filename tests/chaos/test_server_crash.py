"""The engine's server crashes in the middle of the campaign: nothing is lost, and workers go on by themselves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.chaos.campaign import Campaign, run
from tests.chaos.crew import Crew, Engine
from tests.chaos.fixtures import working
from tests.servers import postgres
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer
from tests.servers.redis_books import audit

PROFILES = {
    "short": Campaign(
        jobs=1_000,
        workers=3,
        slots=6,
        seconds=0.1,
        kill_every=1.0,
        fewest_kills=3,
        is_patient=True,
        lease="1500ms",
        most_kills=10,
        calm=1.0,
        settling=0.5,
    ),
    "long": Campaign(jobs=20_000, slots=8, seconds=0.15, kill_every=1.0, is_patient=False, lease="2s", calm=20),
}


@dataclass(frozen=True, kw_only=True)
class Crashable:
    """An engine and the way to crash its server and bring it back."""

    engine: Engine
    crash: Callable[[], None]


def _postgres(directory: Path) -> Iterator[Crashable]:
    with closing(PostgresServer(is_durable=True)) as server:
        engine = Engine(url=postgres.make_url(directory, server.dsn), find_damage=list, is_free=lambda: True)
        # What `pg_ctl stop -m immediate` does: no checkpoint, no goodbye; the start after it recovers from the log.
        yield Crashable(engine=engine, crash=lambda: server.restart(signal.SIGQUIT))


def _redis(directory: Path) -> Iterator[Crashable]:
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:

        def find_damage() -> list[str]:
            with server.client() as client:
                return audit(client, "{perdure}")

        engine = Engine(url=server.url, find_damage=find_damage, is_free=lambda: True)
        yield Crashable(engine=engine, crash=server.restart)


SERVERS: dict[str, Callable[[Path], Iterator[Crashable]]] = {"postgres": _postgres, "redis": _redis}


@pytest.fixture(params=list(SERVERS))
def crashable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crashable]:
    """Each engine that has a server, in turn."""
    yield from SERVERS[request.param](tmp_path)


@pytest.fixture
def crew(crashable: Crashable, tmp_path: Path) -> Iterator[Crew]:
    yield from working(crashable.engine, tmp_path)


# Proves [INV-1].
@pytest.mark.crash
@pytest.mark.timeout(1500)
def test_nothing_is_lost_and_the_pace_comes_back_though_the_server_crashes(
    crew: Crew, crashable: Crashable, record_property: Callable[[str, object], None]
) -> None:
    profile = os.environ.get("PERDURE_CHAOS", "short")
    campaign = PROFILES[profile]
    report = run(campaign, crew, crashable.crash)
    verdict, crash = report.verdict, report.crash
    assert crash is not None
    figures = f"{report.kills} kills in {report.wall:.1f} s; {crash.figures()}; {verdict.figures()}"
    record_property("campaign", figures)
    print(figures)
    assert verdict.problems() == {}
    assert verdict.accepted == report.jobs >= campaign.jobs
    assert crash.after > 0
    if profile == "long":
        # Only long enough a calm gives a pace that can be compared.
        assert crash.after >= 0.95 * crash.before
