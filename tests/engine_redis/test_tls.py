"""A server behind TLS: the store talks to the right one, and to no other."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme
from tests.conformance.scene import Scene
from tests.servers.redis import RedisServer
from tests.servers.tls import TlsDoor

from perdure.engines.opener import open_store
from perdure.errors import EngineUnreachable
from perdure.system.clock import VirtualClock


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> str:
    """The option that names the authority's certificate."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return f"ssl_ca_certs={quote(str(path))}"


def open_guard(server: RedisServer, authority: trustme.CA, name: str) -> TlsDoor:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return TlsDoor(server.socket, context)


@pytest.fixture
def port(server: RedisServer, authority: trustme.CA) -> Iterator[int]:
    with closing(open_guard(server, authority, "localhost")) as opened:
        yield opened.port


async def test_a_store_behind_tls_works_awaited_and_waited_for(port: int, trusted: str) -> None:
    with closing(open_store(f"rediss://localhost:{port}?{trusted}", clock=VirtualClock())) as store:
        scene = Scene(store, VirtualClock())
        job_id = scene.enqueue()
        other = scene.new_job()
        await store.enqueue([other])
        assert [job and job.state for job in await store.get([job_id, other.id])] == ["ready", "ready"]


def test_a_server_that_nobody_vouches_for_is_not_talked_to(port: int) -> None:
    with pytest.raises(EngineUnreachable, match="certificate"):
        open_store(f"rediss://localhost:{port}", clock=VirtualClock())


def test_a_server_with_the_certificate_of_another_host_is_not_talked_to(
    server: RedisServer, authority: trustme.CA, trusted: str
) -> None:
    with (
        closing(open_guard(server, authority, "elsewhere.example")) as opened,
        pytest.raises(EngineUnreachable, match="certificate"),
    ):
        open_store(f"rediss://localhost:{opened.port}?{trusted}", clock=VirtualClock())


def test_a_certificate_is_not_looked_at_only_when_the_url_says_so(port: int) -> None:
    with closing(open_store(f"rediss://localhost:{port}?ssl_cert_reqs=none", clock=VirtualClock())) as store:
        assert Scene(store, VirtualClock()).enqueue()
    with pytest.raises(EngineUnreachable, match="certificate"):
        open_store(f"rediss://localhost:{port}?ssl_cert_reqs=optional", clock=VirtualClock())
