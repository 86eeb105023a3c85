"""The metrics port against clients that hold connections open: bounded threads, short deadlines, always an answer."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from tests.hostile.attack import IS_LONG, PATIENCE, ROOT, RawClient, until

from perdure.observe import endpoint as endpoint_module
from perdure.observe.endpoint import Deadlines, Endpoint

CLIENTS = 1036 if IS_LONG else 100
GET = b"GET /healthz/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Port:
    """A running endpoint."""

    def __init__(self, deadlines: Deadlines) -> None:
        self.is_alive = threading.Event()
        self.is_alive.set()
        self.endpoint = Endpoint(
            "127.0.0.1",
            0,
            render=lambda: (b"perdure_up 1\n" * 1_000_000, "text/plain"),
            is_alive=lambda: self.is_alive.wait(PATIENCE),
            problems=list,
            deadlines=deadlines,
        )
        self.port = int(self.endpoint.address.rsplit(":", 1)[1])
        self._clients: list[RawClient] = []

    def client(self, **options: object) -> RawClient:
        self._clients.append(RawClient(self.port, **options))  # type: ignore[arg-type]
        return self._clients[-1]

    def ask(self) -> bytes:
        client = self.client()
        client.say(GET)
        return client.rest()[:12]

    def close(self) -> None:
        self.is_alive.set()
        for client in self._clients:
            client.close()
        self.endpoint.close()

    @property
    def open(self) -> int:
        return len(self.endpoint._server._visits)


@pytest.fixture
def hasty() -> Iterator[Port]:
    made = Port(Deadlines(head=0.3, answer=0.3))
    yield made
    made.close()


@pytest.fixture
def patient() -> Iterator[Port]:
    made = Port(Deadlines(head=600.0, answer=600.0))
    yield made
    made.close()


@pytest.mark.parametrize("begun", [b"", b"GET /metrics HTTP/1.1\r\nX-Long: ", b"GET /metrics HTTP/1.1\r\n"])
def test_a_client_that_says_a_little_now_and_then_is_let_go(hasty: Port, begun: bytes) -> None:
    client = hasty.client()
    client.say(begun)
    client.drip()
    until(lambda: hasty.open == 0, "its thread has ended")


def test_a_client_that_does_not_read_is_let_go(hasty: Port) -> None:
    client = hasty.client(receive_buffer=4096)
    client.say(b"GET /metrics HTTP/1.1\r\n\r\n")
    until(lambda: hasty.open == 1 or not client.is_open, "it is there")
    until(lambda: hasty.open == 0, "its thread has ended")


def test_clients_that_say_nothing_keep_nobody_out(patient: Port) -> None:
    before = threading.active_count()
    for number in range(CLIENTS):
        patient.client(source=f"127.0.0.{1 + number % 20}").say(b"GET / HTTP/1.1\r\nHo")
    until(lambda: patient.ask() == b"HTTP/1.0 200", "there is an answer")
    assert threading.active_count() - before <= 2 * endpoint_module._MOST_CONNECTIONS


def test_clients_of_one_address_get_a_part_of_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_AT_ONCE", 64)
    port = Port(Deadlines(head=600.0, answer=600.0))
    try:
        port.is_alive.clear()
        busy = [port.client() for _ in range(endpoint_module._MOST_PER_CLIENT)]
        for client in busy:
            client.say(GET)
        until(lambda: [visit.has_asked for visit in _visits(port)] == [True] * len(busy), "all have asked")
        # They are at work, and are not closed for another one; another address has places of its own.
        assert port.client().rest() == b""
        other = port.client(source="127.0.0.2")
        other.say(GET)
        until(lambda: port.open == len(busy) + 1, "it is taken in")
        port.is_alive.set()
        assert [client.rest()[:12] for client in [*busy, other]] == [b"HTTP/1.0 200"] * (len(busy) + 1)
    finally:
        port.close()


def _visits(port: Port) -> list[endpoint_module._Visit]:
    return list(port.endpoint._server._visits.values())


@pytest.mark.parametrize(
    "head",
    [
        b"GET /metrics HTTP/1.1\r\nX-Long: " + b"x" * 60_000 + b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 10_000 + b"\r\n",
        b"GET /" + b"x" * 60_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_a_head_that_is_too_large_ends_the_connection_at_once(patient: Port, head: bytes) -> None:
    client = patient.client()
    client.say(head)
    assert b" 200 " not in client.rest()
    until(lambda: patient.open == 0, "its thread has ended")


SHORT_OF_DESCRIPTORS = """
import logging, os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
logging.basicConfig(stream=sys.stderr)
from perdure.observe.endpoint import Endpoint
made = Endpoint("127.0.0.1", 0, render=lambda: (b"", ""), is_alive=lambda: True, problems=list)
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
print(made.address, flush=True)
sys.stdin.readline()
before = time.process_time()
time.sleep(1.0)
used = time.process_time() - before
for descriptor in taken:
    os.close(descriptor)
print(used, flush=True)
sys.stdin.readline()
made.close()
"""


def test_without_descriptors_its_thread_waits_and_answers_when_they_are_back() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SHORT_OF_DESCRIPTORS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            client = RawClient(port)
            client.say(GET)
            print(file=process.stdin, flush=True)
            # A thread that tries again at once would take all of a second, however slow the machine is.
            assert float(process.stdout.readline()) < 0.3
            assert client.rest().startswith(b"HTTP/1.0 200")
            client.close()
            print(file=process.stdin, flush=True)
            assert process.wait(PATIENCE) == 0
            assert len(process.stderr.read().splitlines()) == 1
        finally:
            process.kill()
