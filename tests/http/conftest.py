"""A target on loopback, and an app that may reach it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.http.target import Target

from perdure import App, Settings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def target() -> Iterator[Target]:
    opened = Target()
    yield opened
    opened.close()


@pytest.fixture
def app() -> Iterator[App]:
    settings = Settings(http_allow=("127.0.0.1",), http_signing_secrets=(SECRET,))
    opened = App("sqlite://", settings=settings)
    yield opened
    opened.close()
