"""A fork while threads of the parent are busy: the child's error names the remedy, and the remedy works."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from tests.chaos.crew import Crew

FORKS = 20 if os.environ.get("PERDURE_HOSTILE") == "long" else 6


@pytest.mark.every_engine
@pytest.mark.crash
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_child_follows_the_advice_of_the_error_while_threads_of_its_parent_enqueue(crew: Crew, way: str) -> None:
    process = crew.start("-m", "tests.runtime.fork_busy", crew._engine.url, way, str(FORKS))
    try:
        assert process.wait(300) == 0, crew.output()
    except subprocess.TimeoutExpired:
        raise AssertionError(crew.output()) from None
    found = re.search(r"failed (\d+) parent (\d+)", crew.output())
    assert found is not None, crew.output()
    assert int(found[1]) == 0, crew.output()
    assert crew.client.stats().ready == FORKS + int(found[2])
