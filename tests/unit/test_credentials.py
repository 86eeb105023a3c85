"""No password, token or signing secret gets into a repr, an error or what commands print, however a URL is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from rich.pretty import pretty_repr

from perdure import App, DeadLetter, Settings
from perdure.application.sources import Configuration
from perdure.cli.main import root
from perdure.configuration.file import read_content
from perdure.engines.opener import open_store
from perdure.engines.postgres.address import read_address as read_postgres
from perdure.engines.redis.address import read_address as read_redis
from perdure.errors import BadOption, BadSetting, PerdureError
from perdure.system.clock import SystemClock
from perdure.text.credentials import hide_credentials, hide_credentials_in

PIECES = ("hush", "velvet")
"""The two halves of each password; none may be seen anywhere."""
PASSWORDS = [f"hush{raw}velvet" for raw in ("", *"@/#?: %&=+[]\\;,'\"|<>{}^`~!$*()éü", "@/", "/@", "?x=", "%zz", "%40")]
SERVERS = ("postgresql", "postgres", "redis", "rediss", "valkey")


def seen_in(text: str) -> list[str]:
    return [piece for piece in PIECES if piece in text]


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_url_is_shown_without_its_credentials(password: str) -> None:
    for tail in ("host/db", "host:5432/db?sslmode=require", "[::1]:6379/0", "host"):
        for user in ("user", "us@er", ""):
            shown = hide_credentials(f"postgresql://{user}:{password}@{tail}")
            assert shown == f"postgresql://…@{tail}"


def test_options_that_hold_secrets_are_hidden_and_others_shown() -> None:
    url = "postgresql://host/db?password=hush&sslmode=require&sslpassword=velvet"
    assert hide_credentials(url) == "postgresql://host/db?password=…&sslmode=require&sslpassword=…"
    assert hide_credentials("https://host/hook?access_token=hush&x=1") == "https://host/hook?access_token=…&x=1"
    assert hide_credentials("sqlite:////var/lib/jobs.db") == "sqlite:////var/lib/jobs.db"


def test_credentials_in_somebody_elses_text_are_hidden() -> None:
    text = 'could not parse "postgresql://user:hu@sh/vel vet@host/db" at all\nsee https://docs.example/'
    shown = hide_credentials_in(text)
    assert shown == 'could not parse "postgresql://…@host/db" at all\nsee https://docs.example/'


@pytest.mark.parametrize("scheme", SERVERS)
@pytest.mark.parametrize("password", PASSWORDS)
def test_opening_a_store_tells_nothing_of_the_password(scheme: str, password: str) -> None:
    """Nobody listens at port 1; a URL that cannot be read is refused before."""
    for place in ("127.0.0.1:1", "127.0.0.1:1/0", "127.0.0.1:1/0?timeout=1"):
        with pytest.raises(PerdureError) as caught:
            open_store(f"{scheme}://user:{password}@{place}", clock=SystemClock())
        assert seen_in(f"{caught.value}{caught.value!r}{caught.value.__cause__!r}") == []


@pytest.mark.parametrize("password", [one for one in PASSWORDS if "/" not in one and "?" not in one])
def test_a_password_with_other_raw_characters_is_understood(password: str) -> None:
    wanted = password.replace("%40", "@")
    if "\\" not in password:
        assert read_postgres(f"user:{password}@host/db").driver["password"] == wanted
    read = read_redis(f"user:{password}@host:7/1", is_tls=False)
    assert (read.username, read.password, read.host, read.port, read.database) == ("user", wanted, "host", 7, 1)


@pytest.mark.parametrize("raw", ["/", "?", "?x=", "/1?", "12/", "12?", "12?prefix="])
@pytest.mark.parametrize("scheme", SERVERS)
def test_a_raw_slash_or_question_mark_is_refused_with_what_to_write(scheme: str, raw: str) -> None:
    with pytest.raises(BadSetting, match=r"%2F for /") as caught:
        open_store(f"{scheme}://user:hush{raw}velvet@host/0".replace("hush12", "12"), clock=SystemClock())
    assert seen_in(str(caught.value)) == []


def test_an_at_sign_in_an_option_stays_possible() -> None:
    assert read_postgres("host:5432/db?user=me@corp").driver["user"] == "me@corp"
    assert read_redis("?socket=/run/a@b/redis.sock", is_tls=False).socket == "/run/a@b/redis.sock"


SETTINGS = Settings(
    url="postgresql://user:hush@vel/velvet@host/db",
    http_signing_secrets=("whsec_aHVzaHZlbHZldGh1c2h2ZWx2ZXRodXNo", "name=whsec_aHVzaHZlbHZldGh1c2h2ZWx2ZXRodXNo"),
    tokens=("admin:sha256:hushvelvet",),
    dead_letter="https://hooks.example/hush/velvet",
)
SECRETS = (*PIECES, "whsec_", "sha256")


@pytest.mark.parametrize("show", [repr, str, "{}".format, "%s".__mod__, pretty_repr], ids=lambda show: str(show)[:20])
def test_settings_show_no_secrets(show: object) -> None:
    assert callable(show)
    configuration = Configuration.read({}, SETTINGS)
    for value in (SETTINGS, configuration, [SETTINGS], {"settings": SETTINGS}):
        text = show(value)
        assert [one for one in SECRETS if one in text] == []
    assert "url='postgresql://…@host/db'" in repr(SETTINGS)
    assert "concurrency=50" in repr(SETTINGS)


def test_settings_keep_their_values() -> None:
    assert SETTINGS.url == "postgresql://user:hush@vel/velvet@host/db"
    assert msgspec.structs.replace(SETTINGS, concurrency=5).tokens == SETTINGS.tokens


def test_other_values_that_hold_secrets_show_none() -> None:
    file = read_content("perdure.toml", b'url = "redis://:hush@host"\ntokens = ["velvet"]')
    letter = DeadLetter.http("https://host/hush?key=velvet", headers={"Authorization": "hush"})
    addresses = [read_postgres("user:hush@host/db?sslpassword=velvet"), read_redis("hush:velvet@host", is_tls=False)]
    app = App("postgresql://user:hush@host/db", settings=SETTINGS, dead_letter=letter)
    for value in (
        file,
        letter,
        *addresses,
        app,
        app.configuration,
        app.settings,
        app.sinks,
        app.surroundings,
        app.http,
    ):
        assert seen_in(repr(value)) == []
        assert seen_in(str(value)) == []


@pytest.mark.parametrize("password", PASSWORDS)
def test_the_url_of_a_sink_or_request_is_refused_without_its_password(password: str) -> None:
    for url in (f"https://user:{password}@host/path", f"htps://user:{password}@host/path"):
        with pytest.raises(BadOption) as caught:
            DeadLetter.coerce(url)
        assert seen_in(str(caught.value)) == []
        with pytest.raises(BadOption) as caught:
            App("sqlite://").http.post(url)
        assert seen_in(str(caught.value)) == []


@pytest.mark.parametrize("password", ["hush@velvet", "hush/velvet", "hush?velvet", "hush#velvet", "hush velvet"])
@pytest.mark.parametrize("command", [["doctor"], ["stats"], ["db", "migrate"], ["worker", "nowhere:app"], ["--urll"]])
def test_commands_print_no_password(password: str, command: list[str]) -> None:
    for scheme in ("postgresql", "redis", "postgress"):
        url = f"{scheme}://user:{password}@127.0.0.1:1/0"
        for json in ([], ["--json"]):
            ran = CliRunner().invoke(root, [*command, "--url", url, *json], env={"PERDURE_DEBUG": "1"})
            assert ran.exit_code != 0
            assert seen_in(ran.output) == []
    ran = CliRunner().invoke(root, [f"postgresql://user:{password}@host/db"])
    assert seen_in(ran.output) == []


def test_the_configuration_file_is_refused_without_its_secrets(tmp_path: Path) -> None:
    """In a process of its own, as a person would see it."""
    (tmp_path / "perdure.toml").write_text('url = "postgresql://user:hush/velvet@host/db"\n')
    os.chmod(tmp_path, 0o700)
    os.chmod(tmp_path / "perdure.toml", 0o600)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    ran = subprocess.run(
        [sys.executable, "-m", "perdure", "stats"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 2
    assert "perdure.toml" in ran.stderr
    assert seen_in(ran.stdout + ran.stderr) == []
