"""An app on every engine, its API in this process, and the API behind a real server."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from tests.conformance.conftest import ENGINES, Engine
from tests.conformance.scene import Scene
from tests.web.reach import Reach

from perdure import App
from perdure.configuration.file import CONFIG_VARIABLE
from perdure.system.clock import SystemClock
from perdure.web.app import Api, create_app

_KEPT = ("PERDURE_CHAOS", CONFIG_VARIABLE)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PERDURE_") and name not in _KEPT]:
        monkeypatch.delenv(name)


@pytest.fixture(params=ENGINES, ids=[engine.name for engine in ENGINES])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


def make_app(url: str, **options: Any) -> App:
    """An app with two tasks."""
    app = App(url, auto_migrate=True, **options)

    @app.task(queue="mail", retry="one-shot")
    def send(to: str, body: str = "hi") -> str:
        return to

    @app.task(name="report.daily", max_attempts=7)
    def report() -> None: ...

    return app


@pytest.fixture
def app(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[App]:
    """On the embedded engine, or on every one where the test asks for `engine`."""
    if "engine" in request.fixturenames:
        url = request.getfixturevalue("engine").make_url(tmp_path)
    else:
        url = f"sqlite:///{tmp_path}/jobs.db"
    made = make_app(url)
    yield made
    made.close()


@pytest.fixture
def scene(app: App) -> Scene:
    return Scene(app.store, SystemClock())


@pytest.fixture
def api(app: App) -> Api:
    return create_app(app)


@pytest.fixture
async def reach(api: Api) -> AsyncIterator[Reach]:
    """The API, asked in this process from this machine, without a token."""
    async with connected(api) as client:
        yield Reach(client)


def connected(api: Api, **options: Any) -> httpx2.AsyncClient:
    client = options.pop("client", ("127.0.0.1", 40000))
    transport = httpx2.ASGITransport(app=api, client=client)
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", **options)


@pytest.fixture
def served() -> Callable[[Api], AbstractContextManager[str]]:
    return serving


@contextmanager
def serving(api: Api) -> Iterator[str]:
    """The API behind a real server in a thread; gives its address."""
    config = uvicorn.Config(api, port=0, log_config=None, lifespan="on", ws="none", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        api.context.live.close()
        thread.join(120)
        assert not thread.is_alive(), "the server did not stop"
