"""The environments of the peers: one each under `.bench/`, made on demand and kept for the next run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.catalogue import Peer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".bench"
PATIENCE = 600.0


class NotMadeError(Exception):
    """An environment could not be made; says why."""


def python_of(peer: Peer) -> str:
    """The interpreter that runs this peer; its environment is made if it is not there yet."""
    if peer.checkout is not None:
        return _python_in(peer.checkout)
    if not peer.packages:
        return sys.executable
    place = FOLDER / peer.name
    python = place / "bin" / "python"
    stamp = place / "bench.stamp"
    wanted = "\n".join([peer.python or sys.version, *peer.packages])
    if stamp.exists() and stamp.read_text() == wanted and python.exists():
        return str(python)
    _uv("venv", "--quiet", "--clear", "--python", _interpreter(peer.python), str(place))
    _uv("pip", "install", "--quiet", "--python", str(python), *peer.packages)
    stamp.write_text(wanted)
    return str(python)


def _python_in(checkout: Path) -> str:
    python = checkout.resolve() / ".venv" / "bin" / "python"
    if not python.exists():
        raise NotMadeError(f"{checkout} has no .venv; run `make setup` there")
    return str(python)


def _interpreter(version: str | None) -> str:
    """This Python, or another version: what pyenv keeps off the path, else whatever uv finds."""
    if version is None:
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    return str(next(iter(sorted(root.glob(f"versions/{version}.*/bin/python"))), version))


def _uv(*arguments: str) -> None:
    # The machine's own certificates count, and no interpreter is fetched from elsewhere.
    environment = {**os.environ, "UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    command = [sys.executable, "-m", "uv", *arguments]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        raise NotMadeError(f"uv {arguments[0]} took longer than {PATIENCE:.0f} s") from None
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reasons = [line for line in said if not line.startswith("warning")] or ["uv failed without a word"]
        raise NotMadeError(" ".join(reasons)[:300])
