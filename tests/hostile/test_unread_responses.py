"""Clients that ask and do not read: what was written for them does not stay in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.hostile.attack import IS_LONG, Process, RawClient, hosted, until

from perdure import App
from perdure.web.server.deadlines import Deadlines

ASK = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
EVENTS = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
HASTY = Deadlines(write=0.4, least_written=16 * 1024, every=0.05)


@pytest.mark.parametrize("last", [b"", ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")])
def test_a_client_that_reads_nothing_is_let_go(tmp_path: Path, last: bytes) -> None:
    with hosted(tmp_path, HASTY) as host:
        clients = [host.client(receive_buffer=4096) for _ in range(5)]
        for client in clients:
            client.say(ASK * 20 + last)
        until(lambda: len(host.server.limit) == 5 or not host.server.limit, "they are there")
        until(lambda: len(host.server.limit) == 0, "they are let go")
        assert host.get() == 200


def test_a_client_that_reads_a_little_now_and_then_is_let_go(tmp_path: Path) -> None:
    with hosted(tmp_path, HASTY) as host:
        client = host.client(receive_buffer=4096)
        client.say(ASK * 50)
        # So little that the whole would take hours.
        until(lambda: not host.server.limit or not client.socket.recv(10), "it is let go")


def test_a_client_that_reads_slowly_but_steadily_gets_everything(tmp_path: Path) -> None:
    deadlines = Deadlines(write=2.0, least_written=1024, every=0.05)
    with hosted(tmp_path, deadlines) as host:
        client = host.client(receive_buffer=8192)
        client.say(ASK * 3 + ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert client.rest().count(b"HTTP/1.1 200") == 4


def test_a_stream_of_events_that_is_not_read_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.web.rest.events.SLOWEST", 0.3)
    with hosted(tmp_path, HASTY) as host:
        live = host.api.context.live
        client = host.client(receive_buffer=4096)
        client.say(EVENTS)
        client.hear(b"retry")
        until(lambda: live.count == 1, "it listens")
        loop = live._polling.get_loop() if live._polling else None
        assert loop is not None

        def tell() -> bool:
            loop.call_soon_threadsafe(live._tell, "stats", {"much": "x" * 100_000})
            return live.count == 0 and not host.server.limit

        until(tell, "it is let go")


@pytest.mark.skipif(not IS_LONG, reason="180 MB take their time: PERDURE_HOSTILE=long")
def test_twenty_responses_of_9_mb_do_not_stay_in_memory(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    for _ in range(200):
        app.enqueue_named("nothing", ["x" * 45_000], {})
    app.close()
    server = Process(tmp_path, "server", "--port", "0", "--json", open_files=1024)
    clients: list[RawClient] = []
    try:
        port = int(server.announced()["url"].rsplit(":", 1)[1])
        before = _memory(server.process.pid)
        for _ in range(20):
            clients.append(RawClient(port, receive_buffer=4096))
            clients[-1].say(b"GET /api/v1/jobs?limit=200 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: _descriptors(server.process.pid) < 20, "the connections are closed")
        assert _memory(server.process.pid) - before < 150
        assert server.stop() == 0
    finally:
        for client in clients:
            client.close()
        server.close()


def _memory(pid: int) -> int:
    """What a process holds, in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1_000_000


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
