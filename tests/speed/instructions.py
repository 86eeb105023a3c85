"""Counts the instructions of Python's interpreter that some work takes: a measure that hardly varies between runs."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any


class Instructions:
    """How many instructions this thread executes inside the `with`, in frames that begin there."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Instructions:
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += event == "opcode"
        return self._step
