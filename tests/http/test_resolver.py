"""Names are resolved in threads; slow names cost themselves time, and nobody else."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.http.slow_dns import SlowDns, until
from tests.http.target import Target
from tests.http.test_connections import ended, working
from tests.http.test_guard import Recorder

from perdure import App, Settings
from perdure.http.errors import AddressRefusedError, NetworkError
from perdure.http.guard import Guard
from perdure.http.network import GuardedNetwork
from perdure.http.resolver import Limits, SystemResolver

ADDRESS = "93.184.216.34"
FOREVER = Limits(timeout=600.0, kept_answer=600.0, kept_failure=600.0, kept_late=600.0)
UNKEPT = Limits(timeout=600.0, kept_answer=0.0, kept_failure=0.0, kept_late=0.0)


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDns]:
    slow = SlowDns()
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    yield slow
    slow.may_answer.set()


def ask(resolver: SystemResolver, *hosts: str) -> list[asyncio.Task[list[str]]]:
    return [asyncio.create_task(resolver.resolve(host)) for host in hosts]


async def drop(tasks: list[asyncio.Task[list[str]]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def settle(dns: SlowDns, resolver: SystemResolver) -> None:
    """Let every thread end."""
    dns.may_answer.set()
    await until(lambda: not resolver.running)


def shapes(count: int) -> list[tuple[list[str], str]]:
    """Slow names and a fast one that is nothing to them, of the same domain, and a domain each."""
    return [
        ([f"slow-{n}.example" for n in range(count)], "fast.example"),
        ([f"slow-{n}.shop.example.com" for n in range(count)], "fast.shop.example.com"),
        ([f"slow.shop-{n}.net" for n in range(count)], "fast.example.org"),
    ]


@pytest.mark.parametrize("shape", [0, 1, 2], ids=["names", "one domain", "many domains"])
@pytest.mark.parametrize("count", [16, 64, 500])
async def test_fast_names_are_resolved_while_slow_ones_hang(dns: SlowDns, count: int, shape: int):
    slow, fast = shapes(count)[shape]
    resolver = SystemResolver(FOREVER)
    asking = ask(resolver, *slow)
    await until(lambda: len(dns.asked) == count)
    assert await asyncio.wait_for(resolver.resolve(fast), 60) == [ADDRESS]
    assert not any(task.done() for task in asking)
    dns.may_answer.set()
    assert await asyncio.gather(*asking) == [[ADDRESS]] * count
    assert sorted(dns.asked) == sorted([*slow, fast])
    await settle(dns, resolver)


async def test_names_that_resolved_before_have_threads_of_their_own_however_many_hang(dns: SlowDns):
    limits = Limits(timeout=600.0, threads=20, reserved=4, per_domain=20, kept_answer=0.0)
    resolver = SystemResolver(limits)
    assert await resolver.resolve("good.example") == [ADDRESS]
    asking = ask(resolver, *(f"slow-{n}.example" for n in range(100)))
    await until(lambda: dns.hanging.total() == 16)
    for _ in range(3):
        assert await asyncio.wait_for(resolver.resolve("good.example"), 60) == [ADDRESS]
    assert (resolver.running, dns.most_hanging) == (16, 16)
    await settle(dns, resolver)
    assert await asyncio.gather(*asking) == [[ADDRESS]] * 100
    assert dns.most_hanging <= 20


async def test_one_domain_cannot_take_all_threads_and_domains_take_turns(dns: SlowDns):
    limits = Limits(timeout=600.0, threads=12, reserved=2, per_domain=6)
    resolver = SystemResolver(limits)
    asking = ask(resolver, *(f"slow-{n}.greedy.example" for n in range(50)))
    await until(lambda: dns.hanging.total() == 6)
    assert await asyncio.wait_for(resolver.resolve("fast.modest.example"), 60) == [ADDRESS]
    asking += ask(resolver, *(f"slow-{n}.other.test" for n in range(50)))
    await until(lambda: dns.hanging.total() == 10)
    late = ask(resolver, "fast.late.test")
    await asyncio.sleep(0)
    dns.may_answer.set()
    assert await late[0] == [ADDRESS]
    # Its domain has its turn after at most one name of each other domain per thread, not after all of them.
    assert dns.asked.index("fast.late.test") < 60
    await asyncio.gather(*asking)
    await settle(dns, resolver)


async def test_a_name_that_is_not_answered_in_time_fails_and_then_fails_at_once(dns: SlowDns):
    resolver = SystemResolver(Limits(timeout=0.05, kept_late=600.0))
    with pytest.raises(NetworkError, match=r"slow\.example cannot be resolved: the resolver has not answered within"):
        await resolver.resolve("slow.example")
    for _ in range(50):
        with pytest.raises(NetworkError, match="not answered"):
            await resolver.resolve("slow.example")
    assert (dns.asked, resolver.running) == (["slow.example"], 1)
    # The failure that the system reports in the end is kept too: the next lookup would hang as long.
    dns.is_broken = True
    await settle(dns, resolver)
    with pytest.raises(NetworkError, match="Name or service not known"):
        await resolver.resolve("slow.example")
    assert dns.asked == ["slow.example"]


async def test_an_answer_that_comes_too_late_serves_the_next_who_asks(dns: SlowDns):
    resolver = SystemResolver(Limits(timeout=0.05, kept_late=600.0))
    with pytest.raises(NetworkError):
        await resolver.resolve("slow.example")
    await settle(dns, resolver)
    assert await resolver.resolve("slow.example") == [ADDRESS]
    assert dns.asked == ["slow.example"]


async def test_without_a_free_thread_a_name_fails_in_time_and_says_so(dns: SlowDns):
    resolver = SystemResolver(Limits(timeout=0.05, threads=3, reserved=1, per_domain=3))
    held = ask(resolver, "slow-1.example", "slow-2.example")
    await until(lambda: dns.hanging.total() == 2)
    with pytest.raises(NetworkError, match=r"no thread was free within 0\.05 s, since 2 other lookups hang"):
        await resolver.resolve("new.example")
    assert "new.example" not in dns.asked
    await asyncio.gather(*held, return_exceptions=True)
    await settle(dns, resolver)
    assert await resolver.resolve("new.example") == [ADDRESS]


async def test_those_who_ask_for_one_name_together_share_one_lookup(dns: SlowDns):
    resolver = SystemResolver(UNKEPT)
    asking = ask(resolver, *(["slow.example"] * 100))
    await until(lambda: dns.asked)
    asking[0].cancel()
    await asyncio.sleep(0)
    dns.may_answer.set()
    assert await asyncio.gather(*asking[1:]) == [[ADDRESS]] * 99
    assert dns.asked == ["slow.example"]
    assert await resolver.resolve("slow.example") == [ADDRESS]
    assert dns.asked == ["slow.example"] * 2


async def test_a_lookup_that_is_given_up_is_shared_with_the_next_who_asks(dns: SlowDns):
    resolver = SystemResolver(FOREVER)
    given_up = ask(resolver, *(["slow.example"] * 3))
    await until(lambda: dns.asked)
    await drop(given_up)
    again = ask(resolver, "slow.example")
    await asyncio.sleep(0)
    dns.may_answer.set()
    assert await again[0] == [ADDRESS]
    assert dns.asked == ["slow.example"]


async def test_a_lookup_that_nobody_waits_for_any_more_is_not_made(dns: SlowDns):
    resolver = SystemResolver(Limits(timeout=600.0, threads=16, reserved=0, per_domain=16))
    busy = ask(resolver, *(f"slow-{n}.example" for n in range(16)))
    await until(lambda: len(dns.asked) == 16)
    given_up = ask(resolver, "given-up.example")
    await asyncio.sleep(0)
    await drop(given_up)
    wanted = ask(resolver, "wanted.example")
    await asyncio.sleep(0)
    dns.may_answer.set()
    await asyncio.gather(*busy, *wanted)
    assert "wanted.example" in dns.asked
    assert "given-up.example" not in dns.asked


async def test_answers_and_failures_are_kept_for_a_while_and_then_asked_for_again(dns: SlowDns):
    resolver = SystemResolver(FOREVER)
    for _ in range(3):
        assert await resolver.resolve("fast.example") == [ADDRESS]
        with pytest.raises(NetworkError):
            await resolver.resolve("unknown.example")
    assert sorted(dns.asked) == ["fast.example", "unknown.example"]
    unkept = SystemResolver(UNKEPT)
    for _ in range(3):
        await unkept.resolve("fast.example")
    assert dns.asked.count("fast.example") == 4


async def test_the_memory_of_names_is_bounded(dns: SlowDns, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("perdure.http.resolver._MOST_KEPT", 10)
    resolver = SystemResolver(FOREVER)
    for n in range(30):
        await resolver.resolve(f"fast-{n}.example")
    dns.asked.clear()
    await resolver.resolve("fast-29.example")
    await resolver.resolve("fast-0.example")
    assert dns.asked == ["fast-0.example"]


async def test_a_name_without_an_answer_is_a_network_error_of_its_own_for_all_who_asked(dns: SlowDns):
    resolver = SystemResolver()
    answers = await asyncio.gather(*ask(resolver, *(["unknown.example"] * 3)), return_exceptions=True)
    assert [str(answer) for answer in answers] == [
        "the host name unknown.example cannot be resolved: Name or service not known"
    ] * 3
    assert all(isinstance(answer, NetworkError) for answer in answers)
    assert len({id(answer) for answer in answers}) == 3


async def test_a_system_without_room_for_threads_fails_the_lookup_and_not_the_worker(
    dns: SlowDns, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    resolver = SystemResolver(UNKEPT)
    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", refuse)
        with pytest.raises(NetworkError, match="no more threads"):
            await resolver.resolve("fast.example")
    held = ask(resolver, "slow.example")
    await until(lambda: dns.asked)
    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", refuse)
        waiting = ask(resolver, "fast.example")
        await asyncio.sleep(0)
    dns.may_answer.set()
    assert await asyncio.gather(*held, *waiting) == [[ADDRESS]] * 2


async def test_a_resolver_that_is_closed_ends_what_waits_and_starts_nothing(dns: SlowDns):
    resolver = SystemResolver(Limits(timeout=600.0, threads=1, reserved=0))
    running = ask(resolver, "slow.example")
    await until(lambda: dns.asked)
    waiting = ask(resolver, "fast.example")
    await asyncio.sleep(0)
    resolver.close()
    with pytest.raises(NetworkError, match="stopping"):
        await waiting[0]
    with pytest.raises(NetworkError, match="stopping"):
        await resolver.resolve("other.example")
    await settle(dns, resolver)
    assert await running[0] == [ADDRESS]
    assert dns.asked == ["slow.example"]


async def test_the_guard_checks_kept_answers_at_every_connection(dns: SlowDns):
    """Proves [INV-19]."""
    resolver, recorder = SystemResolver(FOREVER), Recorder()
    open_guard = GuardedNetwork(Guard(["10.0.0.0/8"]), resolver.resolve, recorder)
    strict = GuardedNetwork(Guard(), resolver.resolve, recorder)
    dns.address = "10.1.2.3"
    with pytest.raises(Exception, match="nobody is there"):
        await open_guard.connect_tcp("fast.example", 80)
    for _ in range(2):
        with pytest.raises(AddressRefusedError, match=r"10\.1\.2\.3 is private"):
            await strict.connect_tcp("fast.example", 80)
    assert (dns.asked, recorder.connected) == (["fast.example"], ["10.1.2.3"])


async def test_a_name_that_changes_its_address_is_connected_to_where_it_was_checked(dns: SlowDns):
    resolver, recorder = SystemResolver(UNKEPT), Recorder()
    network = GuardedNetwork(Guard(), resolver.resolve, recorder)
    with pytest.raises(Exception, match="nobody is there"):
        await network.connect_tcp("fast.example", 80)
    dns.address = "127.0.0.1"
    with pytest.raises(AddressRefusedError):
        await network.connect_tcp("fast.example", 80)
    assert recorder.connected == [ADDRESS]


async def test_jobs_to_fast_hosts_succeed_while_jobs_to_slow_hosts_wait(dns: SlowDns, target: Target):
    dns.address = "127.0.0.1"
    app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",)))
    port = target.port
    try:
        async with working(app, concurrency=120):
            slow = [app.http.post(f"http://slow-{n}.example:{port}/slow", timeout="120s") for n in range(100)]
            slow_ids = await app.enqueue_many_async(slow)
            await until(lambda: dns.hanging.total() == 100)
            fast = [app.http.post(f"http://fast-{n}.example:{port}/fast") for n in range(10)]
            assert await ended(app, *await app.enqueue_many_async(fast)) == ["succeeded"] * 10
            assert {seen.path for seen in target.seen} == {"/fast"}
            assert app.client().count(state="running") == 100
            await asyncio.gather(*(app.client_async().cancel(job_id) for job_id in slow_ids))
            assert set(await ended(app, *slow_ids)) == {"cancelled"}
    finally:
        dns.may_answer.set()
        app.close()


def test_a_process_ends_although_lookups_hang():
    code = (
        "import asyncio, socket, threading\n"
        "from perdure.http.resolver import SystemResolver, Limits\n"
        "from perdure.http.errors import NetworkError\n"
        "socket.getaddrinfo = lambda *a, **k: threading.Event().wait()\n"
        "async def main():\n"
        "    try:\n"
        "        await SystemResolver(Limits(timeout=0.01)).resolve('slow.example')\n"
        "    except NetworkError:\n"
        "        print('ended')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=dict(os.environ)
    )
    assert done.stdout == "ended\n"
