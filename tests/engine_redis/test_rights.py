"""The user that docs/redis.md describes can do all that Perdure does, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import CliRunner
from tests.conformance.every_verb import use_every_verb, wake_a_worker
from tests.conformance.scene import Scene
from tests.servers.redis import RedisServer

from perdure import App
from perdure.cli.main import root
from perdure.engines.opener import open_store
from perdure.errors import EngineUnreachable
from perdure.system.clock import VirtualClock

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "src" / "perdure" / "engines" / "redis"
WORDS_OF_ARGUMENTS = {"COUNT", "LIMIT", "WITHSCORES"}
NOT_FOR_SCRIPTS = {"eval", "evalsha", "ping", "info", "config|get", "client|id", "client|unblock", "subscribe", "blpop"}


def documented() -> list[str]:
    """The command of the page, as it is given to the server."""
    page = (ROOT / "docs" / "redis.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n(ACL SETUSER .*?)```", page, re.DOTALL)
    return block.split()


def documented_for(option: str) -> list[str]:
    """What the page says is needed with an option of the URL, as it is given to the server."""
    page = (ROOT / "docs" / "redis.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| `+") and f"`{option}`" in line.split("| ")[-1]]
    return [word.replace("\\|", "|") for word in re.findall(r"`(\+[^`]+)`", row.split(" | ")[0])]


@pytest.fixture(scope="module")
def guarded() -> Iterator[RedisServer]:
    """A server that lets in the documented user, and its operator."""
    with closing(RedisServer()) as started:
        started.ask(*documented())
        started.ask("SET", "others", "secret")
        yield started


@pytest.fixture
def guarded_url(guarded: RedisServer) -> Iterator[str]:
    yield f"redis://perdure:secret@?socket={guarded.socket}"
    for key in guarded.ask("KEYS", "{perdure}*"):
        guarded.ask("DEL", key)


@pytest.fixture
def user(guarded: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=str(guarded.socket), username="perdure", password="secret") as client:
        yield client


def test_every_verb_is_allowed(guarded_url: str) -> None:
    clock = VirtualClock()
    with closing(open_store(guarded_url, clock=clock)) as store:
        use_every_verb(store, clock)


async def test_a_worker_is_woken_and_stands_by(guarded: RedisServer, guarded_url: str) -> None:
    guarded.ask("CONFIG", "RESETSTAT")
    refused(guarded)  # whatever tests before this one were refused
    await wake_a_worker(guarded_url)
    used = guarded.ask("INFO", "commandstats").keys()
    assert {"cmdstat_blpop", "cmdstat_subscribe"} <= set(used)
    assert not refused(guarded)


def refused(server: RedisServer) -> list[Any]:
    """What the server's log says of things that a user was not allowed to do; the log is empty afterwards."""
    log: list[Any] = server.ask("ACL", "LOG")
    server.ask("ACL", "LOG", "RESET")
    return log


def test_the_command_line_and_metrics_are_allowed(
    guarded: RedisServer, guarded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_URL", guarded_url)
    refused(guarded)
    runner = CliRunner()
    for command in (
        ["doctor"],
        ["stats"],
        ["health"],
        ["queues", "ls"],
        ["workers", "ls"],
        ["db", "status"],
        ["db", "migrate"],
    ):
        ran = runner.invoke(root, command)
        assert ran.exit_code == 0, (command, ran.output)
    app = App(guarded_url)
    assert b"perdure" in app.render_metrics()[0]
    app.close()
    assert refused(guarded) == []


def test_the_rights_are_those_that_scripts_and_connections_use() -> None:
    """No right more, and none is missing where a script seldom goes."""
    used = {
        name
        for path in (SCRIPTS / "lua").rglob("*.lua")
        for name in re.findall(r"'([A-Z]{3,})'", path.read_text(encoding="utf-8"))
    }
    granted = {word[1:] for word in documented() if word.startswith("+")}
    assert granted - NOT_FOR_SCRIPTS == {name.lower() for name in used - WORDS_OF_ARGUMENTS}


@pytest.mark.parametrize(
    "command",
    [
        "FLUSHALL",
        "FLUSHDB",
        "KEYS *",
        "SCAN 0",
        "RANDOMKEY",
        "DBSIZE",
        "MIGRATE 127.0.0.1 1 {perdure}:jobs 0 1",
        "RESTORE {perdure}:x 0 y",
        "DUMP {perdure}:jobs",
        "SWAPDB 0 1",
        "MOVE {perdure}:jobs 1",
        "COPY {perdure}:jobs {perdure}:other",
        "SELECT 1",
        "CONFIG SET dir /tmp",
        "CONFIG REWRITE",
        "CONFIG RESETSTAT",
        "SCRIPT FLUSH",
        "SCRIPT KILL",
        "SCRIPT LOAD return(1)",
        "SHUTDOWN NOSAVE",
        "SAVE",
        "BGSAVE",
        "BGREWRITEAOF",
        "REPLICAOF no one",
        "SLAVEOF no one",
        "MODULE LIST",
        "MONITOR",
        "ACL LIST",
        "ACL SETUSER perdure +@all",
        "CLIENT LIST",
        "CLIENT KILL 127.0.0.1:1",
        "CLIENT PAUSE 1",
        "SLOWLOG GET",
        "LATENCY RESET",
        "PSUBSCRIBE *",
        "GET others",
        "SET {perdure}:jobs x",
        "DEL others",
        "GET perdure",
        "GET {perdure2}:jobs",
        "SUBSCRIBE others",
        "PUBLISH others x",
        "SUBSCRIBE {perdure2}:hints",
        "BLPOP others 1",
    ],
)
def test_anything_else_is_refused(user: redis.Redis, command: str) -> None:
    with pytest.raises(redis.exceptions.NoPermissionError):
        user.execute_command(*command.split())


def test_debugging_is_refused(user: redis.Redis) -> None:
    """By its rights, or by a server that lets nobody do it, which is asked first."""
    with pytest.raises(redis.exceptions.ResponseError, match=r"(?i)not allowed|no permissions"):
        user.execute_command("DEBUG", "SLEEP", "0")


@pytest.mark.parametrize(
    "script",
    [
        "return redis.call('GET', 'others')",
        "return redis.call('GET', KEYS[1])",
        "return redis.call('DEL', 'others')",
        "return redis.call('FLUSHALL')",
        "return redis.call('KEYS', '*')",
        "return redis.call('PUBLISH', 'others', 'x')",
        "return redis.call('CONFIG', 'SET', 'dir', '/tmp')",
    ],
)
def test_a_script_may_do_no_more_than_its_user(guarded: RedisServer, user: redis.Redis, script: str) -> None:
    with pytest.raises(redis.exceptions.RedisError, match=r"(?i)noperm|permission|acl failure|not allowed"):
        user.eval(script, 1, "others")
    assert guarded.ask("GET", "others") == b"secret"


def test_a_store_of_another_prefix_is_denied_in_plain_words(guarded_url: str) -> None:
    with pytest.raises(EngineUnreachable, match=r"may not do that.*prefix"):
        open_store(f"{guarded_url}&prefix=others", clock=VirtualClock())


@pytest.mark.parametrize("missing", ["config|get", "client|id", "client|unblock", "blpop", "subscribe"])
async def test_what_the_page_calls_optional_is(guarded_url: str, missing: str) -> None:
    with closing(RedisServer()) as server:
        server.ask(*(word for word in documented() if word != f"+{missing}"))
        url = guarded_url.replace(guarded_url.partition("socket=")[2], str(server.socket))
        if missing == "subscribe":
            clock = VirtualClock()
            with closing(open_store(f"{url}&listen=false", clock=clock)) as store:
                Scene(store, clock).running()
        else:
            # Without CLIENT UNBLOCK a worker that stops waits for the end of its standby, which a poll bounds.
            await wake_a_worker(url, poll=timedelta(seconds=2))
