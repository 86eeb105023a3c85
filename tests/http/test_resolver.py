"""Names are resolved in threads, once for all who ask at the same time, and never for nobody."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from perdure.http.errors import NetworkError
from perdure.http.network import SystemResolver

Answers = list[tuple[object, ...]]


class SlowDns:
    """A resolver that answers when it is let, and remembers who was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()

    def __call__(self, host: str, *_: object, **__: object) -> Answers:
        self.asked.append(host)
        assert self.may_answer.wait(30)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDns]:
    slow = SlowDns()
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    yield slow
    slow.may_answer.set()


async def until(condition) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def test_those_who_ask_for_one_name_together_share_one_lookup(dns: SlowDns):
    resolver = SystemResolver()
    asking = [asyncio.create_task(resolver.resolve("a.example")) for _ in range(100)]
    await until(lambda: dns.asked)
    asking[0].cancel()
    await asyncio.sleep(0)
    dns.may_answer.set()
    answers = await asyncio.gather(*asking[1:])
    assert answers == [["93.184.216.34"]] * 99
    assert dns.asked == ["a.example"]
    assert await resolver.resolve("a.example") == ["93.184.216.34"]
    assert dns.asked == ["a.example"] * 2
    resolver.close()


async def test_a_lookup_that_nobody_waits_for_any_more_is_not_made(dns: SlowDns):
    resolver = SystemResolver()
    busy = [asyncio.create_task(resolver.resolve(f"busy-{n}.example")) for n in range(16)]
    await until(lambda: len(dns.asked) == 16)
    given_up = asyncio.create_task(resolver.resolve("given-up.example"))
    await asyncio.sleep(0.01)
    given_up.cancel()
    wanted = asyncio.create_task(resolver.resolve("wanted.example"))
    await asyncio.sleep(0.01)
    dns.may_answer.set()
    await asyncio.gather(*busy, wanted)
    assert "wanted.example" in dns.asked
    assert "given-up.example" not in dns.asked
    resolver.close()


async def test_a_name_without_an_answer_is_a_network_error_for_all_who_asked(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> Answers:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    resolver = SystemResolver()
    asking = [asyncio.create_task(resolver.resolve("no.example")) for _ in range(3)]
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert [str(answer) for answer in answers] == [
        "the host name no.example cannot be resolved: Name or service not known"
    ] * 3
    assert all(isinstance(answer, NetworkError) for answer in answers)
    resolver.close()
