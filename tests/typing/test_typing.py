"""A type checker rejects wrong arguments to enqueue, and accepts right ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def errors_in(name: str) -> set[int]:
    """The lines of a file that mypy --strict complains about."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(HERE / name)],
        capture_output=True,
        text=True,
        cwd=HERE.parent.parent,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {int(line) for line in re.findall(rf"{name}:(\d+): error", done.stdout)}


def test_wrong_arguments_are_rejected_and_nothing_else():
    lines = (HERE / "rejected.py").read_text().splitlines()
    marked = {number for number, line in enumerate(lines, start=1) if line.endswith("# error")}
    assert len(marked) > 10
    assert errors_in("rejected.py") == marked


def test_right_arguments_are_accepted():
    assert errors_in("accepted.py") == set()
