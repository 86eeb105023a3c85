"""Resolves host names in threads such that slow names do not hold up others.

The system's resolver blocks and cannot be interrupted, so each lookup has a thread of its own, and a thread that hangs
is lost until the system gives up. These rules keep that from spreading:

- One lookup per name at a time; everybody who asks for the name shares its answer.
- A lookup has a deadline. After it the name fails at once for as long as its thread hangs, and for a while longer if it
  then fails: a slow name occupies one thread, however many jobs name it.
- Threads are bounded. A share of them is kept for names that have resolved before, and one domain cannot take them all.
- Answers and failures are kept for a few seconds. The address guard checks kept answers too: it stands behind this.

Everything but the lookup itself runs on the event loop, so there are no locks. Own code, since an asynchronous DNS
library would ignore the machine's other sources of names (hosts file, mDNS, name service switch).
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from typing import NoReturn, TypeVar

import msgspec

from perdure.http.errors import NetworkError

K = TypeVar("K")
V = TypeVar("V")

_MOST_KEPT = 4096
"""How many names are remembered at most, with answers and as names that have resolved; the oldest are forgotten."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a resolver. Times are in seconds."""

    timeout: float = 10.0
    """How long a lookup may take: two tries of five seconds, as the system's resolver makes them by default."""
    threads: int = 640
    """How many lookups run at once. A thread that waits for DNS takes some 50 KB of memory and no CPU."""
    reserved: int = 64
    """How many of the threads only names that have resolved before may use."""
    per_domain: int = 512
    """How many of the threads the names of one domain, their last two labels, may use."""
    kept_answer: float = 5.0
    """How long an answer is used for further connections."""
    kept_failure: float = 2.0
    """How long a name that could not be resolved fails without another lookup."""
    kept_late: float = 30.0
    """The same, for both, where the answer came after the deadline: the next lookup would be as slow."""


class _Answer(msgspec.Struct, frozen=True):
    """What a lookup found: addresses, or why there are none."""

    addresses: list[str]
    problem: str | None = None


class _Lookup:
    """One name that is being looked up, or waits for a thread."""

    def __init__(self, host: str, deadline: float, answered: asyncio.Future[_Answer]) -> None:
        self.host = host
        self.domain = ".".join(host.split(".")[-2:])
        self.deadline = deadline
        self.answered = answered
        self.waiting = 0
        """How many requests wait for the answer."""
        self.is_running = False


class SystemResolver:
    """Asks the machine's resolver. One event loop uses it, the one that calls `resolve`."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._lookups: dict[str, _Lookup] = {}
        """Lookups that run or wait for a thread, in the order they were asked for."""
        self._first_line: dict[str, _Lookup] = {}
        """Those of them that wait for a thread, where the name has resolved before."""
        self._line: dict[str, dict[str, _Lookup]] = {}
        """The others that wait for a thread, by domain; the domain whose turn is next comes first."""
        self._kept: dict[str, tuple[float, _Answer]] = {}
        self._resolved: dict[str, None] = {}
        """Names that have resolved before; the oldest first."""
        self._running = 0
        self._of_domain: Counter[str] = Counter()
        self._is_closed = False

    @property
    def running(self) -> int:
        """How many threads are looking up a name, those that hang included."""
        return self._running

    async def resolve(self, host: str) -> list[str]:
        """The addresses of a host name; raises NetworkError where there are none in time."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(host)
        if kept is not None and loop.time() < kept[0]:
            return _read(host, kept[1])
        lookup = self._lookups.get(host) or self._begin(host, loop)
        remaining = lookup.deadline - loop.time()
        if remaining > 0:
            lookup.waiting += 1
            try:
                await asyncio.wait([lookup.answered], timeout=remaining)
            finally:
                lookup.waiting -= 1
                self._forget_unwanted(lookup)
        if not lookup.answered.done():
            self._raise_late(lookup)
        return _read(host, lookup.answered.result())

    def close(self) -> None:
        """Start no more lookups. Threads under way end by themselves, and do not keep the process from ending."""
        self._is_closed = True
        for lookup in [lookup for lookup in self._lookups.values() if not lookup.is_running]:
            self._leave_line(lookup)
            del self._lookups[lookup.host]
            lookup.answered.set_result(_Answer([], "the worker is stopping"))

    def _begin(self, host: str, loop: asyncio.AbstractEventLoop) -> _Lookup:
        if self._is_closed:
            raise NetworkError(f"the host name {host} cannot be resolved: the worker is stopping", {})
        lookup = _Lookup(host, loop.time() + self._limits.timeout, loop.create_future())
        self._lookups[host] = lookup
        line = self._first_line if host in self._resolved else self._line.setdefault(lookup.domain, {})
        line[host] = lookup
        self._start_next(loop)
        return lookup

    def _start_next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the lookups there is a thread for: names that have resolved before first, then the domains in turn."""
        while (lookup := self._next()) is not None:
            try:
                threading.Thread(
                    target=self._run, args=(lookup.host, loop), name="perdure-resolver", daemon=True
                ).start()
            except RuntimeError:
                # The system allows no more threads. The lookup waits in line until one of ours ends.
                if self._running:
                    return
                self._leave_line(lookup)
                self._finish(loop, lookup.host, _Answer([], "the system allows no more threads"))
                continue
            self._leave_line(lookup)
            lookup.is_running = True
            self._running += 1
            self._of_domain[lookup.domain] += 1

    def _next(self) -> _Lookup | None:
        limits = self._limits
        if self._running >= limits.threads:
            return None
        if self._first_line:
            return next(iter(self._first_line.values()))
        if self._running >= limits.threads - limits.reserved:
            return None
        for domain, line in self._line.items():
            if self._of_domain[domain] < limits.per_domain:
                self._line[domain] = self._line.pop(domain)  # its next turn comes after those of the others
                return next(iter(line.values()))
        return None

    def _leave_line(self, lookup: _Lookup) -> None:
        self._first_line.pop(lookup.host, None)
        line = self._line.get(lookup.domain, {})
        line.pop(lookup.host, None)
        if not line:
            self._line.pop(lookup.domain, None)

    def _run(self, host: str, loop: asyncio.AbstractEventLoop) -> None:
        """The thread: one lookup, whose answer is handed to the event loop."""
        answer = _ask(host)
        try:
            loop.call_soon_threadsafe(self._ended, loop, host, answer)
        except RuntimeError:
            pass  # the event loop has ended, and with it everybody who asked

    def _ended(self, loop: asyncio.AbstractEventLoop, host: str, answer: _Answer) -> None:
        lookup = self._lookups[host]
        self._running -= 1
        self._of_domain[lookup.domain] -= 1
        if not self._of_domain[lookup.domain]:
            del self._of_domain[lookup.domain]
        self._finish(loop, host, answer)
        self._start_next(loop)

    def _finish(self, loop: asyncio.AbstractEventLoop, host: str, answer: _Answer) -> None:
        lookup = self._lookups.pop(host)
        now = loop.time()
        limits = self._limits
        kept_for = limits.kept_answer if answer.problem is None else limits.kept_failure
        _remember(self._kept, host, (now + (limits.kept_late if now >= lookup.deadline else kept_for), answer))
        if answer.problem is None:
            _remember(self._resolved, host, None)
        lookup.answered.set_result(answer)

    def _forget_unwanted(self, lookup: _Lookup) -> None:
        """A lookup that still waits for a thread when nobody waits for it any more is not made."""
        if not lookup.waiting and not lookup.is_running and not lookup.answered.done():
            self._leave_line(lookup)
            self._lookups.pop(lookup.host, None)

    def _raise_late(self, lookup: _Lookup) -> NoReturn:
        limit = f"{self._limits.timeout:g} s"
        if lookup.is_running:
            reason = f"the resolver has not answered within {limit}"
        else:
            reason = f"no thread was free within {limit}, since {self._running} other lookups hang"
        raise NetworkError(f"the host name {lookup.host} cannot be resolved: {reason}", {})


def _ask(host: str) -> _Answer:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return _Answer([], error.strerror or str(error) or type(error).__name__)
    except UnicodeError:
        return _Answer([], "it is no valid name")
    except Exception as error:  # without an answer the name would count as hanging for ever
        return _Answer([], f"the resolver failed with {type(error).__name__}")
    return _Answer([str(entry[4][0]) for entry in found])


def _read(host: str, answer: _Answer) -> list[str]:
    if answer.problem is not None:
        # A new error for each request: what is known of a request is written into its detail.
        raise NetworkError(f"the host name {host} cannot be resolved: {answer.problem}", {})
    return answer.addresses


def _remember(known: dict[K, V], key: K, value: V) -> None:
    known.pop(key, None)
    known[key] = value
    if len(known) > _MOST_KEPT:
        del known[next(iter(known))]
