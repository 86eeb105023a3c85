"""The guard stands between every URL and the network: nothing that is not public is connected to."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.http.hostile_urls import ANSWERS, HOSTILE
from tests.http.target import Target

from perdure import App, BadOption, BadSetting, Settings
from perdure.http.errors import AddressRefusedError, HttpError, NetworkError
from perdure.http.guard import Guard, why_not_public
from perdure.http.network import GuardedNetwork
from perdure.http.pool import Pool
from perdure.http.request import http_request_from
from perdure.http.secrets import Secrets
from perdure.http.send import Attempt, Sender
from perdure.system.clock import SystemClock


class Recorder(httpcore2.AsyncNetworkBackend):
    """A network that remembers where it was to connect to, and never gets there."""

    def __init__(self) -> None:
        self.connected: list[str] = []

    async def connect_tcp(self, host: str, port: int, **_: Any) -> httpcore2.AsyncNetworkStream:
        self.connected.append(host)
        raise httpcore2.ConnectError("nobody is there")


class Names:
    """A resolver that answers from a table and counts how often it is asked."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        if self._answers:
            return self._answers[min(len(self.asked), len(self._answers)) - 1]
        return ANSWERS.get(host, ["127.0.0.1"])


async def send(url: str, recorder: Recorder, names: Names, *allowed: str) -> Exception:
    """What a request to the URL ends in."""
    network = GuardedNetwork(Guard(allowed), names.resolve, recorder)
    sender = Sender(pool=Pool(network), secrets=Secrets(), clock=SystemClock(), user_agent="test")
    try:
        request = http_request_from({"url": url, "retry_on": "all"})
        await sender.send(request, Attempt(job_id="job", number=1, may_reuse=True))
    except (BadOption, HttpError) as error:
        return error
    raise AssertionError("nobody can have answered")


def test_the_corpus_is_large_and_has_no_doubles():
    assert len(HOSTILE) >= 150
    assert len(set(HOSTILE)) == len(HOSTILE)


@pytest.mark.parametrize("url", HOSTILE)
async def test_no_spelling_of_a_url_reaches_a_guarded_address(url: str):
    """Proves [INV-19]."""
    recorder = Recorder()
    error = await send(url, recorder, Names())
    # Some lead to the public good.example, whatever they look like; the rest gets no connection at all.
    assert set(recorder.connected) <= set(ANSWERS["good.example"])
    if not recorder.connected:
        assert isinstance(error, BadOption | AddressRefusedError)


async def test_a_public_address_is_connected_to():
    recorder = Recorder()
    error = await send("http://good.example/", recorder, Names())
    assert recorder.connected == ["93.184.216.34"]
    assert isinstance(error, NetworkError)


async def test_what_is_connected_to_is_what_was_checked_although_dns_changes_its_mind():
    recorder, names = Recorder(), Names(["93.184.216.34"], ["127.0.0.1"])
    await send("http://rebinding.example/", recorder, names)
    assert names.asked == ["rebinding.example"]
    assert recorder.connected == ["93.184.216.34"]
    error = await send("http://rebinding.example/", recorder, names)
    assert isinstance(error, AddressRefusedError)
    assert recorder.connected == ["93.184.216.34"]


async def test_every_address_of_a_host_is_tried_and_no_more_than_a_few():
    recorder = Recorder()
    await send("http://two.example/", recorder, Names(["93.184.216.34", "2600::1"]))
    assert recorder.connected == ["93.184.216.34", "2600::1"]
    crowded = Recorder()
    await send("http://hundred.example/", crowded, Names([f"93.184.216.{n}" for n in range(1, 101)]))
    assert len(crowded.connected) == 4


async def test_the_refusal_says_what_where_and_how_to_allow_it():
    error = await send("http://private.example/", Recorder(), Names())
    assert str(error) == (
        "the address guard refused the request: private.example leads to 10.1.2.3, and 10.1.2.3 is private; "
        "only public addresses are reached, unless http_allow (PERDURE_HTTP_ALLOW) names private.example or the address"
    )


@pytest.mark.parametrize("entry", ["10.1.2.3", "10.0.0.0/8", "private.example", "Private.Example."])
async def test_what_a_deployment_allows_is_reached(entry: str):
    recorder = Recorder()
    await send("http://private.example/", recorder, Names(), entry)
    assert recorder.connected == ["10.1.2.3"]


@pytest.mark.parametrize("entry", ["10.1.2.4", "10.2.0.0/16", "other.example", "example", "::/0"])
async def test_what_is_allowed_opens_nothing_else(entry: str):
    recorder = Recorder()
    error = await send("http://private.example/", recorder, Names(), entry)
    assert isinstance(error, AddressRefusedError)
    assert recorder.connected == []


async def test_allowing_an_ipv4_address_does_not_open_its_disguises():
    recorder = Recorder()
    for url in ("http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[::1]/"):
        assert isinstance(await send(url, recorder, Names(), "127.0.0.0/8"), AddressRefusedError)
    assert recorder.connected == []


@pytest.mark.parametrize(
    "entry", ["10.0.0.1/8", "10.0.0.0/33", "300.1.1.1", "http://x", "a b", "127.1", "ex*mple", "-"]
)
def test_an_entry_of_the_allow_list_that_means_nothing_is_refused(entry: str):
    with pytest.raises(BadSetting, match="http_allow"):
        App("sqlite://", settings=Settings(http_allow=(entry,)))


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_passes_that_the_standard_library_calls_private_or_special(address):
    is_special = address.is_private or address.is_multicast or address.is_reserved or address.is_unspecified
    if is_special or address.is_loopback or address.is_link_local:
        assert why_not_public(address) is not None


@given(st.ip_addresses(v=6))
def test_only_global_unicast_and_translated_public_ipv6_addresses_pass(address):
    if why_not_public(address) is None:
        assert address in ip_network("2000::/3") or address in ip_network("64:ff9b::/96")


@pytest.mark.parametrize(
    "text", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1", "64:ff9b::8.8.8.8", "2002:808:808::1"]
)
def test_public_addresses_pass(text: str):
    assert why_not_public(ip_address(text)) is None


@pytest.mark.parametrize("retry_on", ["default", "all"])
def test_a_guarded_job_is_dead_at_once_and_no_connection_is_made(target: Target, retry_on):
    app = App("sqlite://")
    with app.testing() as t:
        job_id = app.http.post(f"{target.url}/inside", retry_on=retry_on, max_attempts=5).enqueue()
        t.advance("1d")
        job = t.job(job_id)
    assert (job.state, job.reason, job.attempt) == ("dead", "unrecoverable", 1)
    assert job.error is not None
    assert "127.0.0.1 is loopback" in job.error.message
    assert job.error.detail is not None
    assert job.error.detail["address"] == "127.0.0.1"
    assert target.connections == 0


def test_proxies_of_the_environment_are_not_used(app: App, target: Target, monkeypatch: pytest.MonkeyPatch):
    proxy = Target()
    try:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        with app.testing() as t:
            job_id = app.http.post(f"{target.url}/direct").enqueue()
            t.drain()
            assert t.job(job_id).state == "succeeded"
        assert proxy.connections == 0
    finally:
        proxy.close()
