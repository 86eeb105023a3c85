"""What a store says of its server: what survives what, and what should be known."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from tests.conformance.scene import Scene
from tests.servers.redis import RedisServer, with_options

from perdure.engines.opener import open_store
from perdure.engines.redis.address import read_address
from perdure.engines.redis.capability import capabilities, check, look
from perdure.engines.redis.wire import ServerError
from perdure.errors import EngineUnreachable, Unsupported
from perdure.store.capability import Capabilities
from perdure.system.clock import VirtualClock

SETTINGS = [
    ("no", "always", "", r"no append-only file", r"a crash of the server loses everything since the last snapshot"),
    ("yes", "always", "", r"survives a crash of the server and power loss", None),
    ("yes", "everysec", "", r"up to about a second", r"can lose about the last second"),
    ("yes", "no", "", r"not of its machine", r"up to half a minute"),
    ("yes", "always", "wait_aof=true", r"WAITAOF", None),
    ("yes", "everysec", "wait_aof=true", r"WAITAOF", r"answer WAITAOF too early"),
]


@pytest.mark.parametrize(("appendonly", "fsync", "option", "durability", "warning"), SETTINGS)
def test_durability_is_said_out_loud(
    server: RedisServer, appendonly: str, fsync: str, option: str, durability: str, warning: str | None
) -> None:
    if "wait_aof" in option and server.is_oldest:
        pytest.skip("the server has no WAITAOF")
    server.ask("CONFIG", "SET", "appendonly", appendonly)
    server.ask("CONFIG", "SET", "appendfsync", fsync)
    with closing(open_store(f"{server.url}&{option}", clock=VirtualClock())) as store:
        told = store.capabilities
    assert (told.engine, told.is_shared, told.has_caller_transactions) == ("redis", True, False)
    assert re.search(durability, told.durability)
    if warning is None:
        assert told.warnings == ()
    else:
        assert any(re.search(warning, one) for one in told.warnings)


def managed(info: str, rest: str = "there") -> Capabilities:
    """What is said of a server that answers INFO and not CONFIG."""

    def ask(*command: str) -> bytes:
        if command[0] == "INFO":
            return info.encode()
        raise ServerError("unknown command 'CONFIG'")

    server, address = look(ask), read_address(rest, is_tls=False)
    check(server, address)
    return capabilities(server, address)


def test_a_managed_server_that_hides_its_settings_is_taken_with_a_warning() -> None:
    told = managed("# Server\r\nredis_version:7.2.4\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n")
    assert told.version == "Redis 7.2.4"
    assert any("does not answer CONFIG" in warning for warning in told.warnings)
    assert managed("redis_version:7.2.4\r\n").warnings[1].startswith("The server does not tell its maxmemory-policy")


def test_a_managed_server_that_may_evict_is_refused_all_the_same() -> None:
    with pytest.raises(Unsupported, match="volatile-lru"):
        managed("redis_version:7.2.4\r\naof_enabled:1\r\nmaxmemory_policy:volatile-lru\r\n")


@pytest.mark.parametrize("info", ["redis_version:6.0.16\r\n", "redis_version:7.2.4\r\nvalkey_version:7.1.0\r\n"])
def test_a_server_that_is_too_old_is_refused(info: str) -> None:
    with pytest.raises(EngineUnreachable, match=r"needs Redis 6\.2 or Valkey 7\.2"):
        managed(info)


def test_a_server_without_waitaof_cannot_be_asked_to_wait_for_it() -> None:
    with pytest.raises(Unsupported, match="has no WAITAOF"):
        managed("redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n", "there?wait_aof=true")


def test_a_user_with_few_rights_can_do_everything(server: RedisServer) -> None:
    """The rights that docs/redis.md names are enough."""
    rights = "+@read +@write +@connection +eval +evalsha +publish +subscribe +unsubscribe +info +time +type"
    server.ask(
        "ACL",
        "SETUSER",
        "perdure",
        "on",
        ">secret",
        "resetkeys",
        "resetchannels",
        "~{jobs}*",
        "&{jobs}:*",
        *rights.split(),
    )
    url = with_options(f"redis://perdure:secret@?socket={server.socket}", prefix="jobs")
    with closing(open_store(url, clock=VirtualClock())) as store:
        scene = Scene(store, VirtualClock())
        scene.dead()
        assert any("does not answer CONFIG" in warning for warning in store.capabilities.warnings)
    with pytest.raises(EngineUnreachable, match="may not do that"):
        open_store(with_options(url, prefix="others"), clock=VirtualClock())
