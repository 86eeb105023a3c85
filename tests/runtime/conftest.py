"""Real workers with real signals, on a real store: the embedded one, and in the long tests every engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.crew import Crew, Engine
from tests.chaos.fixtures import ENGINES, crew, working

__all__ = ["crew"]

# How a worker treats its handlers does not depend on the engine; what does is in the conformance and crash tests.
HERE = list(ENGINES) if os.environ.get("PERDURE_CHAOS") == "long" else ["sqlite"]


@pytest.fixture(params=HERE)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    yield from ENGINES[request.param](tmp_path)


@pytest.fixture(scope="module", params=HERE)
def shared_crew(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """A crew for all tests of a module: for those that show that one and the same worker survives them all."""
    directory = tmp_path_factory.mktemp("shared")
    for engine in ENGINES[request.param](directory):
        yield from working(engine, directory)
