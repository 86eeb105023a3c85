"""Links lead somewhere, named tests exist, invariants have code and proof, and no file says what it must not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, kept_files, page, prose

LABEL = re.compile(r"\[INV-\d+\]")
INVARIANTS = re.findall(r"^- \*\*(\[INV-\d+\])", page("invariants.md"), re.MULTILINE)


def labels_under(folder: str) -> dict[str, list[str]]:
    """Which files under a folder carry which label."""
    found: dict[str, list[str]] = {}
    for path in kept_files():
        if path.is_relative_to(ROOT / folder) and path != Path(__file__):
            for label in LABEL.findall(path.read_text(encoding="utf-8")):
                found.setdefault(label, []).append(str(path.relative_to(ROOT)))
    return found


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_relative_link_resolves(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(path.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), f"{path.name} links to {target}"
        if anchor:
            assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{path.name} links to {target}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, new = set[Path](), {ROOT / "README.md"}
    while new:
        reached |= new
        new = {target for page in new for target in pages_linked_from(page)} - reached
    assert set(PAGES) <= reached
    # The internals are reached through ARCHITECTURE.md; all other pages are named in the README itself.
    direct = pages_linked_from(ROOT / "README.md") | {ROOT / "README.md"}
    assert {page for page in PAGES if page.parent.name != "internals"} <= direct


def pages_linked_from(page: Path) -> set[Path]:
    targets = re.findall(r"\]\(([^)]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def test_every_test_that_the_docs_name_exists() -> None:
    named = {found for path in PAGES for found in re.findall(r"`(tests/\S+?\.py)::(\w+)`", path.read_text("utf-8"))}
    assert len(named) >= 12
    for file, test in sorted(named):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert test in functions, f"{file}::{test}"


def test_every_guarantee_names_its_test() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    table = page.partition("| guarantee | test |")[2].partition("\n\n")[0].strip().splitlines()[1:]
    assert table
    for row in table:
        assert re.search(r"\| `tests/\S+::test_\w+` \|$", row), row


def test_the_invariants_are_numbered_without_gaps() -> None:
    assert [f"[INV-{number}]" for number in range(1, len(INVARIANTS) + 1)] == INVARIANTS
    assert len(INVARIANTS) >= 12


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_every_invariant_stands_in_code_and_tests_and_no_other_does(folder: str) -> None:
    assert set(labels_under(folder)) == set(INVARIANTS)


def test_no_file_names_a_registry_or_this_checkout_or_leaves_work_undone() -> None:
    # Put together here, so that this very file does not say them.
    forbidden = [
        "py" + "pi.org",
        "python" + "hosted",
        "npm" + "js",
        "crates" + ".io",
        "TO" + "DO",
        "FIX" + "ME",
        str(ROOT),
    ]
    for path in kept_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        for words in forbidden:
            assert words not in text, f"{path.relative_to(ROOT)} says {words}"
