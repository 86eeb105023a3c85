"""`app.testing()`: the real pipeline on an in-memory store, with a clock that the test moves and seeded jitter."""

from __future__ import annotations

from perdure.testing.harness import Harness

__all__ = ["Harness"]
