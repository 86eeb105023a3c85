"""Clients that open connections and do not use them: none of them keeps others out, grows memory or fills the log."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.hostile.attack import IS_LONG, Hosted, Process, RawClient, hosted, until

from perdure import App, Settings
from perdure.errors import BadSetting
from perdure.system.connection_limit import MOST_CONNECTIONS, ConnectionLimit, affordable, client_of
from perdure.system.log_limit import LogLimit, RepeatFilter
from perdure.web.server.deadlines import BoundedProtocol, Deadlines

SHORT = Deadlines(
    first_byte=0.4,
    head=0.4,
    body=0.4,
    rest_of_body=0.4,
    idle=0.4,
    write=0.4,
    closing=0.4,
    least_written=1024,
    every=0.05,
)
HEAD = b"GET /healthz/live HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
EVENTS = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLIENTS = 300 if IS_LONG else 40


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Hosted]:
    """A server that gives its clients little time."""
    with hosted(tmp_path, SHORT) as host:
        yield host


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Hosted]:
    """A server that takes few connections, and has all the time in the world."""
    patient = Deadlines(first_byte=600, head=600, body=600, rest_of_body=600, idle=600, write=600, every=0.05)
    with hosted(tmp_path, patient, max_connections=12, max_client_connections=6) as host:
        yield host


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"", b""),
        (b"GET", b"HTTP/1.1 408"),
        (HEAD, b"HTTP/1.1 408"),
        (HEAD + b"\r\n", b"HTTP/1.1 200"),
        (POST + b"\r\n{", b""),
        (POST + b"Expect: 100-continue\r\n\r\n", b"HTTP/1.1 100"),
    ],
    ids=["nothing", "a word", "half a head", "one request", "half a body", "no body after 100"],
)
def test_a_client_that_says_no_more_is_let_go(hasty: Hosted, said: bytes, heard: bytes) -> None:
    def talk() -> bool:
        client = hasty.client()
        client.say(said)
        return client.rest().startswith(heard)

    # On a busy machine a whole deadline may pass before the client has said a word.
    until(talk, "the server answered before it closed")
    until(lambda: len(hasty.server.limit) == 0, "the connection is forgotten")


@pytest.mark.parametrize(
    "begun",
    [
        b"GET / HTTP/1.1\r\nX-Long: ",
        HEAD + b"\r\nGET / HTTP/1.1\r\nX-Second: ",
        POST + b"\r\n",
        b"GET /healthz/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
    ],
    ids=["head", "second head", "body", "body that nobody wants"],
)
def test_a_client_that_says_a_little_now_and_then_gets_no_more_time(hasty: Hosted, begun: bytes) -> None:
    client = hasty.client()
    client.say(begun)
    client.drip()
    until(lambda: len(hasty.server.limit) == 0, "the connection is forgotten")


def test_a_client_that_goes_on_asking_is_not_let_go(tmp_path: Path) -> None:
    deadlines = Deadlines(idle=10.0, first_byte=10.0, every=3600.0)
    with hosted(tmp_path, deadlines) as host:
        client = host.client()
        until(lambda: len(host.server.limit) == 1, "it is taken in")
        (connection,) = host.server.limit.guests()
        assert isinstance(connection, BoundedProtocol)

        def look(now: float) -> None:
            """Look at the connection as the server does from time to time, at a time of the test's choice."""
            until(lambda: connection.phase() == "idle", "the exchange is over")
            connection.look(now, deadlines)

        for number in range(5):
            client.say(HEAD + b"\r\n")
            assert b" 200 " in client.hear(b"}")
            # Together they take many times as long as one may; each request begins a new time.
            look(1000.0 + 16 * number)
            look(1008.0 + 16 * number)
            assert client.is_open
        look(1075.0)
        assert client.rest() == b""


def test_pipelined_requests_are_all_answered_in_turn(small: Hosted) -> None:
    client = small.client()
    client.say((HEAD + b"\r\n") * 200 + HEAD + b"Connection: close\r\n\r\n")
    assert client.rest().count(b"HTTP/1.1 200") == 201


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a:b\r\n" * 40_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a:b\r\n" * 500 + b"\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["a long line", "very many lines", "many lines", "a long address"],
)
def test_a_head_that_is_too_large_is_refused_at_once(small: Hosted, head: bytes) -> None:
    client = small.client()
    client.say(head)
    # Where the rest of the head is still under way, the answer may be lost to the reset.
    assert client.rest()[:12] in (b"HTTP/1.1 431", b"")
    until(lambda: len(small.server.limit) == 0, "the connection is closed")


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01\x00", b"\r\n" * 100 + b"?\r\n\r\n", b"GET\r\n\r\n"])
def test_what_is_no_http_is_refused_and_logged_once_in_a_while(small: Hosted, garbage: bytes) -> None:
    for _ in range(5):
        client = small.client()
        client.say(garbage + b"\r\n\r\n")
        assert client.rest()[:12] in (b"HTTP/1.1 400", b"")
    assert small.get() == 200


def test_a_client_that_holds_many_connections_does_not_keep_others_out(small: Hosted) -> None:
    """Attackers at many addresses fill every place; the one who really asks has the place of one of them."""
    held = [small.client(source=f"127.0.0.{2 + number % 8}") for number in range(CLIENTS)]
    for client in held:
        client.say(b"GET / HTTP/1.1\r\nHo")
    until(lambda: sum(client.is_open for client in held) <= 12, "the others are closed")
    assert small.get() == 200
    assert len(small.server.limit) <= 12


def test_connections_over_the_limit_of_one_address_replace_its_own_oldest(small: Hosted) -> None:
    other = small.client(source="127.0.0.9")
    other.say(b"GET / HTTP/1.1\r\nHo")
    held = [small.client() for _ in range(CLIENTS)]
    for client in held:
        client.say(b"GET / HTTP/1.1\r\nHo")
    until(lambda: sum(client.is_open for client in held) == 6, "six are left")
    assert all(client.is_open for client in held[-6:])
    assert other.is_open
    assert small.get() == 200


def test_half_sent_bodies_keep_nobody_out_either(small: Hosted) -> None:
    held = [small.client(source=f"127.0.0.{2 + number % 8}") for number in range(CLIENTS)]
    for client in held:
        client.say(POST + b"\r\n{")
    until(lambda: sum(client.is_open for client in held) <= 12, "the others are closed")
    assert small.get() == 200


def test_a_connection_at_work_is_never_closed_for_another_one(small: Hosted) -> None:
    streams = [small.client() for _ in range(6)]
    for stream in streams:
        stream.say(EVENTS)
        stream.hear(b"retry")
    refused = small.client()
    assert refused.rest().startswith(b"HTTP/1.1 503")
    assert all(stream.is_open for stream in streams)
    assert small.client(source="127.0.0.2").is_open


def test_refused_connections_are_logged_once_in_a_while(small: Hosted, caplog: pytest.LogCaptureFixture) -> None:
    streams = [small.client() for _ in range(6)]
    for stream in streams:
        stream.say(EVENTS)
        stream.hear(b"retry")
    with caplog.at_level(logging.WARNING):
        for _ in range(CLIENTS):
            small.client().rest()
    assert len([record for record in caplog.records if "refused" in record.message]) == 1


def test_one_client_gets_a_part_of_the_event_streams_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.web.live.MOST_PER_CLIENT", 2)
    secret = "a-secret-of-many-letters"
    with hosted(tmp_path, tokens=(f"read:{secret}", "read:another-secret-of-letters")) as host:

        def listen(authorization: str) -> bytes:
            client = host.client()
            client.say(EVENTS.replace(b"\r\n\r\n", f"\r\nAuthorization: {authorization}\r\n\r\n".encode()))
            return client.hear(b"\r\n")[:12]

        assert listen(f"Bearer {secret}") == b"HTTP/1.1 200"
        assert listen(f"bearer {secret}") == b"HTTP/1.1 200"
        assert listen(f"Bearer    {secret}") == b"HTTP/1.1 429"
        assert listen("Bearer another-secret-of-letters") == b"HTTP/1.1 200"


def test_a_lack_of_descriptors_is_waited_out_and_logged_once(
    small: Hosted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, refusals = socket.socket.accept, iter(range(3))

    def accept(listener: socket.socket) -> tuple[socket.socket, object]:
        if listener.getsockname()[1] == small.port and next(refusals, None) is not None:
            raise OSError(24, "Too many open files")
        return real(listener)

    monkeypatch.setattr(socket.socket, "accept", accept)
    with caplog.at_level(logging.WARNING):
        assert small.get() == 200
    assert [record.message for record in caplog.records if "accepted" in record.message] == [
        "No connection to the API can be accepted: Too many open files"
    ]


def test_an_attack_costs_the_worker_beside_the_api_nothing(tmp_path: Path) -> None:
    """More half-sent heads than there are descriptors: all jobs succeed, the log stays short, and the API answers."""
    open_files, heads = (1024, 1036) if IS_LONG else (128, 200)
    up = Process(tmp_path, "up", "tests.hostile.exhausting:app", "--port", "0", "--json", open_files=open_files)
    attackers: list[RawClient] = []
    try:
        url = up.announced()["url"]
        port = int(url.rsplit(":", 1)[1])
        app = App(f"sqlite:///{tmp_path}/jobs.db")
        jobs = []
        for number in range(heads):
            attackers.append(RawClient(port, source=f"127.0.0.{1 + number % 20}"))
            attackers[-1].say(b"GET / HTTP/1.1\r\nHo")
            if number % 10 == 0:
                jobs.append(app.enqueue_named("on_loop", [number], {}))
        with httpx2.Client(base_url=url, timeout=60) as client:
            assert client.get("/healthz/live").status_code == 200
            until(lambda: app.client().stats().succeeded == len(jobs) or up.process.poll() is not None, "the jobs end")
            assert up.process.poll() is None, up.log.read_text()[-2000:]
            assert client.get("/healthz/live").status_code == 200
        app.close()
        log = up.log.read_text()
        assert "Traceback" not in log
        assert len([line for line in log.splitlines() if "succeeded" not in line]) < 20, log
        assert up.stop() == 0
    finally:
        for attacker in attackers:
            attacker.close()
        up.close()


class Guest:
    def __init__(self, *, waits: bool = True) -> None:
        self.waits = waits
        self.is_evicted = False

    def is_waiting(self) -> bool:
        return self.waits

    def evict(self) -> None:
        self.is_evicted = True


def test_the_client_with_the_most_connections_makes_room_for_one_with_fewer() -> None:
    limit = ConnectionLimit(4, 3)
    many = [Guest() for _ in range(3)]
    assert all(limit.enter("many", guest) for guest in many)
    assert limit.enter("one", Guest())
    assert limit.enter("two", Guest())
    assert [guest.is_evicted for guest in many] == [True, False, False]
    # A client with as many as the busiest gets no more.
    assert limit.enter("one", Guest(waits=False))
    assert not limit.enter("one", Guest())
    assert len(limit) == 4


def test_leaving_twice_is_counted_once() -> None:
    limit, guest = ConnectionLimit(1, 1), Guest(waits=False)
    assert limit.enter("a", guest)
    limit.leave("a", guest)
    limit.leave("a", guest)
    assert (len(limit), limit.enter("a", guest), limit.enter("b", Guest(waits=False))) == (0, True, False)


@pytest.mark.parametrize(
    ("address", "client"),
    [
        (("10.0.0.1", 1), "10.0.0.1"),
        (("::ffff:10.0.0.1", 1, 0, 0), "10.0.0.1"),
        (("2001:db8::1", 1, 0, 0), "2001:db8::/64"),
        (("2001:db8::ffff:1", 1, 0, 0), "2001:db8::/64"),
        (("fe80::1%eth0", 1, 0, 0), "fe80::/64"),
        ("/a/socket", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_client_is_an_address_or_the_network_of_one(address: object, client: str) -> None:
    assert client_of(address) == client


def test_the_limit_stays_below_that_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1024, 1024))
    monkeypatch.setattr("perdure.system.connection_limit._open_descriptors", lambda: 24)
    assert (affordable(None), affordable(100), affordable(5000)) == (500, 100, 936)
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1_000_000, 1_000_000))
    assert (affordable(None), affordable(5000)) == (MOST_CONNECTIONS, 5000)
    monkeypatch.setattr("resource.getrlimit", lambda kind: (30, 30))
    assert affordable(None) >= 1
    assert affordable(10) >= 1


@pytest.mark.parametrize("wrong", [{"max_connections": 0}, {"max_client_connections": -1}])
def test_limits_that_let_nobody_in_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(BadSetting):
        Settings(**wrong)  # type: ignore[arg-type]


def test_repeated_lines_of_a_library_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("hostile.test")
    logger.addFilter(RepeatFilter(LogLimit(every=0.0)))
    logger.warning("again")
    assert [record.getMessage() for record in caplog.records] == ["again"]
    quiet = logging.getLogger("hostile.quiet")
    quiet.addFilter(RepeatFilter(LogLimit(every=3600.0)))
    for _ in range(100):
        quiet.warning("invalid")
        quiet.info("not a warning")
    assert [record.getMessage() for record in caplog.records].count("invalid") == 1
