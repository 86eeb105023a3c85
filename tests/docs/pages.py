"""The pages of the docs as tests read them: their text, their tables and their code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_NOT_KEPT = frozenset({".git", ".venv", ".bench", "__pycache__", "dist", "build"})


def page(name: str) -> str:
    """The text of a page of docs/."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """The text without its fenced blocks."""
    return _FENCED.sub("", text)


def python_blocks(path: Path) -> list[tuple[int, str]]:
    """The python blocks of a page, each with the line that it begins at."""
    text = path.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start()) + 2, found[1]) for found in _BLOCK.finditer(text)]


def table_names(text: str) -> list[str]:
    """What the first cells of all tables name: every `word` in them."""
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def section(text: str, title: str) -> str:
    """The part of a page under a heading, up to the next of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,2}} |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"there is no section {title!r}"
    return found[2]


def kept_files() -> Iterator[Path]:
    """Every text file of the project, caches and the environment left out."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        is_hidden = any(part in _NOT_KEPT or part.endswith("cache") or part == ".hypothesis" for part in parts)
        if path.is_file() and not is_hidden and b"\x00" not in path.read_bytes()[:1024]:
            yield path
