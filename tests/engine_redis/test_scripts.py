"""Scripts: each states its contract, none is unbounded, and their work does not grow with the store."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from tests.conformance.scene import LEASE, SECOND, Scene, ended, failure, success
from tests.servers.redis import RedisServer

from perdure.engines.opener import open_store
from perdure.engines.redis.filter import COUNT_AT
from perdure.engines.redis.lua import script
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

ENGINE = Path(__file__).parents[2] / "src" / "perdure" / "engines" / "redis"
SCRIPTS = sorted((ENGINE / "lua").glob("*.lua"))
FRAGMENTS = sorted((ENGINE / "lua" / "fragments").glob("*.lua"))
LARGE = 200_000
NAMES = [path.stem for path in SCRIPTS]


def body(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_states_its_contract(path: Path) -> None:
    header = path.read_text(encoding="utf-8").partition("--+ ")[0]
    assert re.match(r"-- [a-z, ]+: .+", header)
    for part in ("-- KEYS: ", "-- ARGV: now, sender", "-- Returns: ", "-- Guarantees: "):
        assert part in header


@pytest.mark.parametrize("path", [*SCRIPTS, *FRAGMENTS], ids=lambda path: path.stem)
def test_no_script_asks_for_all_keys_or_decodes_what_is_opaque(path: Path) -> None:
    text = body(path)
    for word in ("'KEYS'", "'SCAN'", "cjson", "cmsgpack", "'FCALL'", "math.random", "'FLUSH"):
        assert word not in text
    for loop in re.findall(r"while (.+) do", text):
        assert loop in ("at <= last", "at <= #ARGV", "found[1]"), "a loop whose end is not plain to see"


def test_every_script_and_every_fragment_is_used() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in ENGINE.rglob("*.py"))
    assert [name for name in NAMES if f'"{name}"' not in code] == []
    included = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    assert [path.stem for path in FRAGMENTS if f"--+ {path.stem}\n" not in included] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_what_the_server_calls_it(name: str, client: redis.Redis) -> None:
    assert client.script_load(script(name).text) == script(name).sha
    assert "--" not in re.sub(r"'[^']*'", "", script(name).text), "comments are not sent"


class Steps:
    """How many commands a server has run, those inside scripts included."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def of(self, what: object) -> int:
        assert callable(what)
        self._server.ask("CONFIG", "RESETSTAT")
        what()
        with self._server.client() as client:
            stats = client.info("commandstats")
        own = ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_info", "cmdstat_config|resetstat", "cmdstat_client|setinfo")
        return sum(figures["calls"] for name, figures in stats.items() if name not in own)


def fill(server: RedisServer, number: int) -> Scene:
    """A store with so many jobs of each kind that can be many."""
    clock = VirtualClock()
    store = open_store(server.url, clock=clock)
    scene = Scene(store, clock)
    for first in range(0, number, 20_000):
        many = range(first, min(first + 20_000, number))
        store.enqueue([scene.new_job(queue=f"queue-{at % 10}", priority=at % 7) for at in many]).wait()
        store.enqueue([scene.new_job(delay=timedelta(days=1 + at % 30)) for at in many]).wait()
    return scene


def everyday(scene: Scene) -> dict[str, object]:
    """The verbs that are used all the time, each as a small piece of work."""
    worker = scene.worker(lease=timedelta(days=1))
    held = scene.fetch(worker, queue="queue-1", limit=20)
    return {
        "enqueue": lambda: scene.store.enqueue([scene.new_job(unique=f"u{at}") for at in range(10)]).wait(),
        "fetch": lambda: scene.fetch(worker, queue="queue-2", limit=10),
        "commit": lambda: scene.store.commit([ended(job, success(job)) for job in held[:10]]).wait(),
        "fail": lambda: scene.store.commit([ended(job, failure(job)) for job in held[10:]]).wait(),
        "promote": lambda: scene.store.promote(10).wait(),
        "beat": lambda: scene.store.beat(worker, LEASE).wait(),
        "reap": lambda: scene.store.reap(10).wait(),
        "prune": lambda: scene.store.prune(SECOND, 10).wait(),
        "queues": lambda: scene.store.queues().wait(),
        "count": lambda: scene.store.count(JobFilter(state="ready")).wait(),
        "list": lambda: scene.store.list(JobFilter(), limit=10).wait(),
        "list dead": lambda: scene.store.list(JobFilter(state="dead"), limit=10).wait(),
        "cancel": lambda: scene.store.cancel([held[15].id], "unwanted").wait(),
        "replay": lambda: scene.store.replay(JobFilter(), 10, SECOND).wait(),
    }


def test_what_a_verb_does_is_the_same_on_a_small_and_on_a_large_store(server: RedisServer) -> None:
    steps = Steps(server)
    scene = fill(server, 1000)
    small = {name: steps.of(verb) for name, verb in everyday(scene).items()}
    scene.store.close()
    server.ask("FLUSHALL")
    scene = fill(server, LARGE // 2)
    assert scene.store.count(JobFilter()).wait() == LARGE
    large = {name: steps.of(verb) for name, verb in everyday(scene).items()}
    scene.store.close()
    assert {name: number for name, number in large.items() if number > small[name] + 5} == {}


def test_a_search_through_many_jobs_is_cut_into_scripts_that_are_soon_over(server: RedisServer) -> None:
    scene = fill(server, 3000)
    server.ask("CONFIG", "RESETSTAT")
    assert scene.store.count(JobFilter(task="nobody")).wait() == 0
    with server.client() as client:
        stats = client.info("commandstats")
    scripts = sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha",))
    assert scripts >= 3
    # Each looks at its page of jobs at once.
    assert stats["cmdstat_hmget"]["calls"] == 6000 // COUNT_AT
    scene.store.close()
