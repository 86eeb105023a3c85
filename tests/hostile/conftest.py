"""Clients and circumstances that mean harm, against real servers and workers on loopback.

`make test` runs them with small numbers and short deadlines. `make hostile` (PERDURE_HOSTILE=long) runs them with the
numbers that once broke something: 1,036 half-sent heads under a limit of 1,024 open files, twenty unread responses of
9 MB each.
"""

from __future__ import annotations

import os

import pytest
from tests.chaos.fixtures import crew, engine, pytest_collection_modifyitems

__all__ = ["crew", "engine", "pytest_collection_modifyitems"]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ("PERDURE_CHAOS", "PERDURE_HOSTILE", "PERDURE_CONFIG")
    for name in [name for name in os.environ if name.startswith("PERDURE_") and name not in kept]:
        monkeypatch.delenv(name)
