"""Makes the development environment: a stdlib venv in .venv with the locked packages and this project in it.

Needs Python 3.11+ and pip, nothing else. uv is installed into the venv and does the rest; where there is no uv for
the platform, pip installs the same lock. A stamp holding the hash of the inputs makes a second run instant.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "perdure.stamp"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs this has not installed the project yet
        print(f"Perdure needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: make PYTHON=python3.12")
        return 2
    wanted = _fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted and PYTHON.exists():
        return 0
    print("setting up .venv (once) ...", flush=True)
    _make_venv()
    _install()
    STAMP.write_text(wanted)
    return 0


def _fingerprint() -> str:
    digest = hashlib.sha256(sys.version.encode() + str(ROOT).encode())
    for path in (LOCK, ROOT / "pyproject.toml", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _make_venv() -> None:
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=os.name != "nt").create(VENV)
    except (subprocess.CalledProcessError, SystemExit, ImportError):
        # Some distributions ship venv without ensurepip; the system's pip can fill the environment from outside.
        venv.EnvBuilder(with_pip=False, clear=True, symlinks=os.name != "nt").create(VENV)


def _install() -> None:
    pip = _pip()
    uv = [str(PYTHON), "-m", "uv"]
    # The machine's own certificates count, as they do for pip: a company's proxy signs with one of its own.
    environment = {
        **os.environ,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NATIVE_TLS": "1",
        "UV_SYSTEM_CERTS": "1",
        "VIRTUAL_ENV": str(VENV),
    }
    has_uv = _succeeds([*pip, "install", "--quiet", "uv>=0.5"], environment) and _succeeds(
        [*uv, "--version"], environment
    )
    if has_uv:
        # The lock's hashes are checked in both ways.
        synced = _succeeds([*uv, "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK)], environment)
        if synced and _succeeds([*uv, "pip", "install", "--quiet", "--no-deps", "-e", str(ROOT)], environment):
            return
        print("uv could not install the lock; trying pip ...", flush=True)
    _run([*pip, "install", "--quiet", "--require-hashes", "-r", str(LOCK)], environment)
    _run([*pip, "install", "--quiet", "--no-deps", "-e", str(ROOT)], environment)


def _pip() -> list[str]:
    own = [str(PYTHON), "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return own
    return [sys.executable, "-m", "pip", "--python", str(PYTHON)]


def _succeeds(command: list[str], environment: dict[str, str]) -> bool:
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"this step failed, so .venv is not complete: {' '.join(command)}")


if __name__ == "__main__":
    sys.exit(main())
