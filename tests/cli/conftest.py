"""Runs commands in this process, in processes of their own, and on a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.admin.scene import Scene

from perdure.cli.main import root
from perdure.configuration.file import CONFIG_VARIABLE
from perdure.system.clock import SystemClock, VirtualClock


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PERDURE_") or name == "NO_COLOR"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(CONFIG_VARIABLE, "none")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A store whose clock stands a minute ago, so that all that happened is in the past."""
    made = Scene(tmp_path / "jobs.db", VirtualClock(SystemClock().now() - timedelta(minutes=1)))
    yield made
    made.close()


class Runner:
    """Runs `perdure` commands on the scene's store."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory

    def __call__(self, *args: str, stdin: str | None = None) -> Result:
        """In this process."""
        return CliRunner().invoke(root, args, input=stdin, env={"PERDURE_URL": self.url})

    def json(self, *args: str) -> Any:
        result = self(*args, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def process(
        self, *args: str, env: dict[str, str] | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """In a process of its own, without a terminal."""
        return subprocess.run(
            [sys.executable, "-m", "perdure", *args],
            env={**os.environ, "PERDURE_URL": self.url, **(env or {})},
            cwd=self.directory,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def terminal(self, *args: str, typed: str = "", env: dict[str, str] | None = None) -> tuple[int, str]:
        """In a process of its own, on a pseudo-terminal, with something typed; gives exit code and screen."""
        keyboard, screen = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "perdure", *args],
            env={**os.environ, "PERDURE_URL": self.url, "COLUMNS": "200", "TERM": "xterm-256color", **(env or {})},
            cwd=self.directory,
            stdin=screen,
            stdout=screen,
            stderr=screen,
        )
        os.close(screen)
        os.write(keyboard, typed.encode())
        seen = b""
        while True:
            try:
                piece = os.read(keyboard, 65536)
            except OSError:  # Linux says so when the last process has closed the terminal
                break
            if not piece:
                break
            seen += piece
        os.close(keyboard)
        return process.wait(60), seen.decode()


@pytest.fixture
def perdure(scene: Scene, tmp_path: Path) -> Runner:
    return Runner(scene.url, tmp_path)


@pytest.fixture
def nowhere(tmp_path: Path) -> Runner:
    """Runs commands on a store that does not exist."""
    return Runner(f"sqlite:///{tmp_path}/missing.db", tmp_path)
