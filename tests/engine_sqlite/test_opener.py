"""open_store: which URL is which store, and errors that never show a password."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.conformance.scene import Scene

from perdure.engines.opener import OPENERS, open_store
from perdure.errors import BadSetting, PerdureError, SchemaTooOld
from perdure.store.reads import JobFilter
from perdure.system.clock import VirtualClock


def test_three_slashes_are_a_path_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///mine.db", clock=VirtualClock()).close()
    assert (tmp_path / "mine.db").exists()


def test_four_slashes_are_an_absolute_path(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/mine.db", clock=VirtualClock()).close()
    assert (tmp_path / "mine.db").exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "SQLite://"])
def test_memory_is_private_to_its_store(url: str) -> None:
    one, two = open_store(url, clock=VirtualClock()), open_store(url, clock=VirtualClock())
    Scene(one, VirtualClock()).enqueue()
    assert (one.count(JobFilter()).wait(), two.count(JobFilter()).wait()) == (1, 0)
    assert not one.capabilities.is_shared
    one.close()
    two.close()


@pytest.mark.parametrize(
    "url", ["sqlite://perdure.db", "sqlite:///a.db?mode=ro", "sqlite:///", "perdure.db", "", "sqlite:///dir/"]
)
def test_a_url_that_is_nearly_right_is_refused_with_examples_or_opens_memory(url: str) -> None:
    if url == "sqlite:///":
        open_store(url, clock=VirtualClock()).close()
        return
    with pytest.raises(BadSetting, match=r"sqlite:///perdure\.db"):
        open_store(url, clock=VirtualClock())


def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match=r"mysql://.*sqlite://"):
        open_store("mysql://root@there/db", clock=VirtualClock())


@pytest.mark.parametrize("scheme", [*OPENERS, "mysql", "no-scheme"])
def test_a_password_never_gets_into_an_error(scheme: str) -> None:
    url = "user:s3cret@there/db" if scheme == "no-scheme" else f"{scheme}://user:s3cret@there/db"
    with pytest.raises(PerdureError) as caught:
        open_store(url, clock=VirtualClock())
    assert "s3cret" not in str(caught.value)


def test_a_store_migrates_itself_unless_told_not_to(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/mine.db"
    with pytest.raises(SchemaTooOld):
        open_store(url, clock=VirtualClock(), auto_migrate=False)
    open_store(url, clock=VirtualClock()).close()
    open_store(url, clock=VirtualClock(), auto_migrate=False).close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///{}/mine.db"])
async def test_an_inline_store_starts_no_thread(url: str, tmp_path: Path) -> None:
    before = threading.active_count()
    clock = VirtualClock()
    store = open_store(url.format(tmp_path), clock=clock, is_inline=True)
    scene = Scene(store, clock)
    heard: list[int] = []
    stop = store.wakeups.subscribe(lambda: heard.append(store.count(JobFilter()).wait()))
    await store.enqueue([scene.new_job()])
    assert scene.fetch(scene.worker())[0].attempt == 1
    assert heard == [1]
    assert threading.active_count() == before
    stop()
    store.close()


def test_an_inline_store_answers_at_once_even_when_it_is_awaited() -> None:
    clock = VirtualClock()
    store = open_store("sqlite://", clock=clock, is_inline=True)
    with pytest.raises(StopIteration) as answered:
        next(store.now().__await__())
    assert answered.value.value == clock.now()
    store.close()
