"""Runs what needs an event loop of its own, also from inside another one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def outside_loop(call: Callable[[], T]) -> T:
    """Make a call that runs an event loop; from inside another running loop, in a thread beside it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    answers: list[T] = []
    errors: list[BaseException] = []

    def beside() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=beside, name="perdure-harness")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]
