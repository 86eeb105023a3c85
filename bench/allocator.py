"""The allocator of the Redis server: jemalloc, which Redis and Valkey are built with unless told otherwise.

The server in the tests' wheel uses the C library's, which is slower, and more so with a million jobs in the store. So
the bench has it load jemalloc where the machine has it, or Debian's package can be had; a run's settings say which it
was.
"""

from __future__ import annotations

import ctypes.util
import shutil
import subprocess
import sys
from pathlib import Path

from bench.environments import FOLDER

PACKAGE = "libjemalloc2"
PATIENCE = 60.0


def jemalloc() -> str | None:
    """The library, as the server is told to load it; None where there is none."""
    if sys.platform != "linux":
        return None
    # What an earlier run unpacked is as good as what the machine has.
    kept = sorted((FOLDER / PACKAGE).glob("usr/lib/*/libjemalloc.so.2"))
    return ctypes.util.find_library("jemalloc") or (str(kept[0]) if kept else None)


def provide() -> None:
    """Get the package and unpack it, for which nobody need be root; nothing changes where that cannot be done."""
    if jemalloc() is not None or shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return
    place = FOLDER / PACKAGE
    place.mkdir(parents=True, exist_ok=True)
    if _ran(["apt-get", "-q", "download", PACKAGE], place):
        for package in place.glob("*.deb"):
            _ran(["dpkg-deb", "-x", str(package), str(place)], place)


def _ran(command: list[str], place: Path) -> bool:
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, check=False, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
