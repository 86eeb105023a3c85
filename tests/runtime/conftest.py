"""Real workers with real signals, on a real store: the embedded one, and in the long tests every engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.chaos.crew import Crew
from tests.chaos.fixtures import ENGINES, crew, engine, pytest_collection_modifyitems, working

__all__ = ["crew", "engine", "pytest_collection_modifyitems"]


@pytest.fixture(scope="module", params=list(ENGINES))
def shared_crew(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """A crew for all tests of a module: for those that show that one and the same worker survives them all."""
    directory = tmp_path_factory.mktemp("shared")
    for made in ENGINES[request.param](directory):
        yield from working(made, directory)
