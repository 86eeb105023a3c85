"""A server that is too old is refused with a message; the docs name the same version."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import EngineUnusable
from perdure.engines.postgres.address import read_address
from perdure.engines.postgres.capability import OLDEST, look

ROOT = Path(__file__).parents[2]


def test_a_server_before_the_oldest_version_is_refused() -> None:
    script = look(read_address("postgresql://localhost/app")).script()
    next(script)
    with pytest.raises(EngineUnusable, match=r"The server is PostgreSQL 15\.9, and Perdure needs 16 or newer"):
        script.send([("15.9", OLDEST - 1, "on", "on", None)])


def test_readme_and_docs_name_the_oldest_version() -> None:
    assert f"PostgreSQL {OLDEST // 10000}+" in (ROOT / "README.md").read_text("utf-8")
    assert f"version {OLDEST // 10000} or newer" in (ROOT / "docs" / "postgres.md").read_text("utf-8")
