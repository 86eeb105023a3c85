"""Ports of this machine for servers of the tests, each for one test process only.

A port that the system picks, as for port 0, may be given to somebody else before the server has it, and again while the
server is restarted. The ports here lie below those that the system picks, and a locked file keeps each for the process
that took it, until that process ends.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

RANGE = range(12_000, 22_000)
"""The first ports that are tried. Nodes of a Redis Cluster also use the port 10,000 above, which is below 32,768."""

_locks: dict[int, int] = {}
"""The ports of this process, each with its locked file."""


def free_port(*, also: tuple[int, ...] = ()) -> int:
    """A port that nobody listens on; `also` tells how far above it there must be others for the same process."""
    for port in _candidates():
        wanted = [port, *(port + offset for offset in also)]
        taken = [number for number in wanted if _take(number)]
        if taken == wanted:
            return port
        for number in taken:
            os.close(_locks.pop(number))
    raise AssertionError(f"no free port from {RANGE.start} to {RANGE.stop}")


def _candidates() -> Iterator[int]:
    """All ports of the range; each process begins at another one, so that few are tried in vain."""
    start = os.getpid() * 37 % len(RANGE)
    yield from RANGE[start:]
    yield from RANGE[:start]


def _take(port: int) -> bool:
    if port in _locks:
        return False
    folder = Path(tempfile.gettempdir()) / "perdure-test-ports"
    try:
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:  # of another user
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(("127.0.0.1", port))
    except OSError:
        os.close(lock)
        return False
    _locks[port] = lock
    return True
