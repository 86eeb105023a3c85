"""perdure.toml is read only where no other user can have written it; a file that is named is the user's word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.configuration.file import CONFIG_VARIABLE, read_configuration_file
from perdure.errors import BadSetting

ANOTHER = 4711
"""A user that nobody is here."""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A perdure.toml in the working directory, with the usual modes."""
    directory = tmp_path / "place"
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    monkeypatch.chdir(directory)
    made = directory / "perdure.toml"
    made.write_text("concurrency = 7")
    made.chmod(0o644)
    return made


def is_read(environment: dict[str, str] | None = None) -> bool:
    found = read_configuration_file(environment or {})
    return found is not None and found.settings == {"concurrency": 7}


def refusal(environment: dict[str, str] | None = None) -> str:
    with pytest.raises(BadSetting) as caught:
        read_configuration_file(environment or {})
    return str(caught.value)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400, 0o660, 0o664])
@pytest.mark.parametrize("directory", [0o700, 0o755, 0o775, 0o2775])
def test_a_file_that_only_its_user_and_group_may_write_is_read(file: Path, mode: int, directory: int) -> None:
    file.chmod(mode)
    file.parent.chmod(directory)
    assert is_read()


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o646])
def test_a_file_that_everybody_may_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    said = refusal()
    assert f"{file} is not read, because everybody may write it" in said
    assert "chmod" in said
    assert f"{CONFIG_VARIABLE}={file}" in said


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o703, 0o757])
def test_a_file_in_a_directory_that_everybody_may_write_to_is_refused(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    assert f"everybody may write to its directory {file.parent}" in refusal()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_or_directory_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, ANOTHER, -1)
    assert f"it belongs to another user (number {ANOTHER})" in refusal()
    os.chown(file, 0, -1)
    os.chown(file.parent, ANOTHER, -1)
    assert f"its directory {file.parent} belongs to another user" in refusal()


def test_another_user_than_root_trusts_the_files_of_root(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
    if owner == 0:
        assert is_read()
    else:
        assert "belongs to another user" in refusal()


def test_a_link_must_lead_to_a_file_that_can_be_trusted(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file.rename(elsewhere / "shared.toml")
    file.symlink_to(elsewhere / "shared.toml")
    elsewhere.chmod(0o755)
    assert is_read()
    elsewhere.chmod(0o1777)
    assert f"everybody may write to its directory {elsewhere}" in refusal()
    elsewhere.chmod(0o755)
    (elsewhere / "shared.toml").chmod(0o666)
    assert "everybody may write it" in refusal()


def test_no_file_in_such_a_directory_is_no_fault(file: Path) -> None:
    file.unlink()
    file.parent.chmod(0o1777)
    assert read_configuration_file({}) is None


def test_a_file_that_is_named_may_lie_anywhere(file: Path) -> None:
    file.parent.chmod(0o1777)
    if os.geteuid() == 0:
        os.chown(file, ANOTHER, -1)
    assert is_read({CONFIG_VARIABLE: str(file)})
    assert is_read({CONFIG_VARIABLE: "perdure.toml"})


def test_a_file_that_is_named_is_refused_if_everybody_may_write_it(file: Path) -> None:
    file.chmod(0o666)
    assert "everybody may write it" in refusal({CONFIG_VARIABLE: str(file)})


def test_a_device_may_be_named(file: Path) -> None:
    found = read_configuration_file({CONFIG_VARIABLE: "/dev/null"})
    assert found is not None
    assert found.settings == {}


def test_none_reads_no_file_wherever_it_lies(file: Path) -> None:
    file.chmod(0o666)
    assert read_configuration_file({CONFIG_VARIABLE: "none"}) is None
