"""A resolver of the system that hangs for some names until it is let, and answers for others at once."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable

Answers = list[tuple[object, ...]]


class SlowDns:
    """Stands in for `socket.getaddrinfo`; names that begin with `slow` wait for `may_answer`."""

    def __init__(self, address: str = "93.184.216.34") -> None:
        self.address = address
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.hanging: Counter[str] = Counter()
        self.most_hanging = 0
        self.is_broken = False
        """Whether lookups end in a failure."""
        self._lock = threading.Lock()

    def __call__(self, host: str, *_: object, **__: object) -> Answers:
        with self._lock:
            self.asked.append(host)
        if host.startswith("slow"):
            with self._lock:
                self.hanging[host] += 1
                self.most_hanging = max(self.most_hanging, self.hanging.total())
            assert self.may_answer.wait(120)
            with self._lock:
                self.hanging[host] -= 1
        if self.is_broken or host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.address, 0))]


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)
