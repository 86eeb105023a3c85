"""Real workers with real signals, on a real store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.chaos.crew import Crew
from tests.chaos.fixtures import ENGINES, crew, engine

__all__ = ["crew", "engine", "shared_crew"]


@pytest.fixture(scope="module", params=list(ENGINES))
def shared_crew(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """A crew for all tests of a module: for those that show that one and the same worker survives them all."""
    directory = tmp_path_factory.mktemp("shared")
    for engine in ENGINES[request.param](directory):
        crew = Crew(engine.url, directory)
        try:
            yield crew
        finally:
            crew.close()
            print(crew.output()[-10_000:])
        assert engine.find_damage() == []
