"""The conformance suite's words in real time: the server's clock decides."""

from __future__ import annotations

from typing import Any

from tests.conformance.scene import Scene

from perdure.store import Store
from perdure.system.clock import SystemClock


class RealScene(Scene):
    """A scene whose time passes by itself."""

    def __init__(self, store: Store) -> None:
        clock: Any = SystemClock()
        super().__init__(store, clock)
