"""A primary that becomes a replica and is turned back: callers see an outage, never a defect, and workers go on."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.chaos.crew import Crew, Engine, until
from tests.conformance.scene import Scene
from tests.servers.redis import RedisServer, with_options

from perdure.engines.opener import open_store
from perdure.engines.redis.fault import kind_of, to_perdure_error
from perdure.engines.redis.wire import ServerError
from perdure.errors import EngineBusy, EngineError, EngineFull, EngineUnreachable
from perdure.model.job import JobId
from perdure.runtime.outage import can_pass
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock

UNBLOCKED = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"


@pytest.mark.parametrize(
    ("said", "kind", "error"),
    [
        (UNBLOCKED, "lost", EngineUnreachable),
        ("READONLY You can't write against a read only replica.", "read-only", EngineUnreachable),
        ("LOADING Valkey is loading the dataset in memory", "loading", EngineUnreachable),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "lost", EngineUnreachable),
        ("CLUSTERDOWN The cluster is down", "lost", EngineUnreachable),
        ("TRYAGAIN Multiple keys request during rehashing of slot", "lost", EngineUnreachable),
        ("NOREPLICAS Not enough good replicas to write.", "read-only", EngineUnreachable),
        ("OOM command not allowed when used memory > 'maxmemory'.", "full", EngineFull),
        ("MISCONF Errors writing to the AOF file: No space left on device", "full", EngineFull),
        ("BUSY Valkey is busy running a script.", "busy", EngineBusy),
    ],
)
def test_what_a_server_says_during_a_failover_is_an_outage(said: str, kind: str, error: type[EngineError]) -> None:
    raised = ServerError(said)
    assert kind_of(raised) == kind
    # Older servers put the code into the text of the script's error.
    assert kind_of(ServerError(f"ERR Error running script: @user_script: -{said}")) == kind
    seen = to_perdure_error(raised, "the server")
    assert type(seen) is error
    assert isinstance(seen, EngineError)
    assert can_pass(seen)
    assert "defect" not in str(seen)


def test_a_change_that_waits_for_replicas_when_its_server_becomes_one_is_in_doubt(server: RedisServer) -> None:
    clock = VirtualClock()
    with closing(open_store(server.url, clock=clock)) as store:
        Scene(store, clock).enqueue()  # the server knows the script from now on
    # No replica will ever confirm: the enqueue waits in the server until that becomes a replica.
    with closing(open_store(with_options(server.url, wait_replicas="1", timeout="120"), clock=clock)) as store:
        scene = Scene(store, clock)
        job = scene.new_job(id=JobId("in-doubt"))
        failed: list[BaseException] = []

        def enqueue() -> None:
            try:
                store.enqueue([job]).wait()
            except EngineError as error:
                failed.append(error)

        caller = threading.Thread(target=enqueue)
        caller.start()
        until(lambda: server.ask("INFO", "clients")["blocked_clients"] == 1, "the enqueue waits for a replica")
        server.ask("REPLICAOF", "127.0.0.1", "1")
        caller.join(60)
        server.ask("REPLICAOF", "NO", "ONE")
        (error,) = failed
        assert type(error) is EngineUnreachable
        assert "defect" not in str(error)
    with closing(open_store(server.url, clock=clock)) as store:
        store.enqueue([job]).wait()
        assert store.count(JobFilter()).wait() == 2


@pytest.mark.crash
def test_workers_that_block_on_a_server_go_on_after_it_was_a_replica_for_a_while(tmp_path: Path) -> None:
    with closing(RedisServer(appendonly="yes", appendfsync="always")) as server:
        crew = Crew(Engine(url=server.url, find_damage=list, is_free=lambda: True), tmp_path)
        try:
            # A long poll: only the blocking wait or the end of the outage can make the worker look.
            workers = [crew.worker(lease="20s", poll="30s") for _ in range(2)]
            until(lambda: len(crew.registered()) == 2, "the workers are there")
            for _ in range(3):
                until(lambda: server.ask("INFO", "clients")["blocked_clients"] >= 2, "the workers wait in the server")
                server.ask("REPLICAOF", "127.0.0.1", "1")
                until(lambda: server.ask("INFO", "clients")["blocked_clients"] == 0, "nobody waits in a replica")
                server.ask("REPLICAOF", "NO", "ONE")
                ids = [crew.enqueue("on_loop") for _ in range(20)]
                until(lambda ids=ids: all(crew.job(id_).state == "succeeded" for id_ in ids), "every job has run")
            assert crew.stop(*workers) == [0, 0]
            assert "defect" not in crew.output()
            assert "Traceback" not in crew.output()
        finally:
            crew.close()
