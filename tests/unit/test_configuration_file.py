"""perdure.toml: what may stand in it, and what is said about what may not."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.configuration.file import read_configuration_file, read_content
from perdure.configuration.settings import Settings, setting_kinds
from perdure.errors import BadSetting
from perdure.model.policy.retry import Retry
from perdure.model.queue.settings import QueueSettings

ROOT = Path(__file__).parents[2]


def settings(text: str) -> dict[str, object]:
    return read_content("perdure.toml", text.encode()).settings


def queues(text: str) -> dict[str, QueueSettings]:
    return read_content("perdure.toml", text.encode()).queues


def refusal(text: str | bytes) -> BadSetting:
    with pytest.raises(BadSetting) as caught:
        read_content("perdure.toml", text if isinstance(text, bytes) else text.encode())
    assert "perdure.toml" in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("concurrency = 5", 5),
        ('concurrency = "5"', 5),
        ('lease = "1m30s"', timedelta(seconds=90)),
        ("lease = 20", timedelta(seconds=20)),
        ("lease = 0.5", timedelta(milliseconds=500)),
        ('lease = "20"', timedelta(seconds=20)),
        ("otel = true", True),
        ('otel = "yes"', True),
        ("auto_migrate = false", False),
        ("otel_ratio = 1", 1.0),
        ("otel_ratio = 0.25", 0.25),
        ('otel_ratio = "0.25"', 0.25),
        ('hosts = ["a.example", " b.example ", ""]', ("a.example", "b.example")),
        ('hosts = "a.example, b.example"', ("a.example", "b.example")),
        ('queues = ["mail:3", "default"]', ("mail:3", "default")),
        ('metrics_port = "none"', None),
        ("metrics_port = 0", 0),
        ('url = " sqlite:///x.db "', "sqlite:///x.db"),
    ],
)
def test_numbers_truths_texts_and_lists_are_taken(line: str, value: object) -> None:
    name = line.partition(" ")[0]
    found = settings(line)
    assert found == {name: value}
    assert type(found[name]) is type(value)


@pytest.mark.parametrize("name", setting_kinds())
def test_every_setting_may_stand_in_the_file_as_a_text(name: str) -> None:
    text = {"dead_letter": "queue:graves", "queue_settings": "mail: strict", "log": "json", "retry": "none"}.get(
        name, "1"
    )
    assert list(settings(f'{name} = "{text}"')) == [name]


def test_an_empty_text_is_as_good_as_none() -> None:
    assert settings('url = ""\nlease = "  "') == {}


def test_nothing_in_the_file_says_nothing() -> None:
    found = read_content("perdure.toml", b"# nothing yet\n")
    assert (found.settings, found.queues, found.app) == ({}, {}, None)


def test_a_byte_order_mark_and_windows_line_ends_are_no_trouble() -> None:
    assert settings('\ufeffconcurrency = 5\r\nlog = "json"\r\n') == {"concurrency": 5, "log": "json"}


def test_secrets_do_not_show_where_values_are_printed() -> None:
    assert "whsec" not in repr(settings('http_signing_secrets = ["whsec_c2VjcmV0"]'))
    assert "hush" not in repr(settings('[secrets.a]\nvalue = "hush"\nhosts = ["b.test"]'))


def test_a_table_of_a_secret_has_its_value_and_hosts() -> None:
    text = """
[secrets.stripe]
value = "sk=1,2"
hosts = ["api.stripe.com", "*.stripe.test:8443"]

[secrets.hook]
value = ["whsec_new", "whsec_old"]
hosts = "hooks.example.com"
"""
    assert settings(text) == {
        "secrets": (
            "stripe@api.stripe.com+*.stripe.test:8443=sk=1,2",
            "hook@hooks.example.com=whsec_new",
            "hook@hooks.example.com=whsec_old",
        )
    }


@pytest.mark.parametrize(
    "text",
    [
        '[secrets.a]\nvalue = "hush"',
        '[secrets.a]\nhosts = ["b.test"]',
        '[secrets.a]\nvalue = "hush"\nhosts = ["b.test"]\nport = 5',
        '[secrets.a]\nvalue = "hush"\nhosts = []',
        '[secrets.a]\nvalue = "hush"\nhosts = [1]',
        '[secrets.a]\nvalue = "hush"\nhosts = "b=c"',
        '[secrets.a]\nvalue = ["hush", 1]\nhosts = ["b.test"]',
        '[secrets.a]\nvalue = ""\nhosts = ["b.test"]',
        '[secrets."a@b"]\nvalue = "hush"\nhosts = ["b.test"]',
        '[secrets]\na = "hush"',
    ],
)
def test_a_table_of_a_secret_that_is_wrong_is_told_without_the_value(text: str) -> None:
    error = refusal(text)
    assert "[secrets." in error.message
    assert "hosts = [" in str(error)
    assert "hush" not in str(error)


@pytest.mark.parametrize(
    ("text", "wrong", "instead"),
    [
        ("concurrency = true", "concurrency cannot be True", "whole number"),
        ("concurrency = 5.0", "concurrency cannot be 5.0", "whole number"),
        ('concurrency = "many"', "concurrency cannot be 'many'", "whole number"),
        ("concurrency = 0", "concurrency is 0", "at least 1"),
        ("concurrency = [5]", "concurrency cannot be [5]", "whole number"),
        ('lease = "soon"', "lease is 'soon'", "30s"),
        ("lease = true", "lease is True", "30s"),
        ("lease = -1", "lease", "30s"),
        ("lease = 1979-05-27", "lease cannot be", '"30s"'),
        ('lease = "1ms"', "lease is", "between 100ms and 1h"),
        ("otel = 1", "otel cannot be 1", "true or false"),
        ('otel = "perhaps"', "otel cannot be 'perhaps'", "true or false"),
        ("otel_ratio = 2", "otel_ratio is 2", "between 0 and 1"),
        ("otel_ratio = nan", "otel_ratio is nan", "between 0 and 1"),
        ("otel_ratio = 1" + "0" * 400, "otel_ratio cannot be", "a number"),
        ("url = 5", "url cannot be", "text in quotes"),
        ("hosts = [1]", "hosts cannot be [1]", 'hosts = ["one", "two"]'),
        ('http_signing_secrets = ["hush", 1]', "http_signing_secrets cannot be what it is", "brackets"),
        ("queues = []", "queues is empty", "unset"),
        ('log = "loud"', "log is 'loud'", "console or json"),
        ("app = 5", "app is 5", "myapp:app"),
    ],
)
def test_a_wrong_value_is_told_with_file_key_and_what_to_write(text: str, wrong: str, instead: str) -> None:
    error = refusal(text)
    assert wrong in error.message
    assert instead in str(error)
    assert "hush" not in str(error)


@pytest.mark.parametrize(
    ("text", "wrong", "instead"),
    [
        ("leese = 5", "leese", "Did you mean lease?"),
        ('PERDURE_URL = "x"', "PERDURE_URL", "Did you mean url?"),
        ("max-payload = 5", "max-payload", "Did you mean max_payload?"),
        ("[queue.mail]\nconcurrency = 5", "queue", "Did you mean queues?"),
        ("colour = 5", "colour", "docs/settings.md"),
        ('[tool.perdure]\nurl = "x"', "tool", "at the top of the file"),
        ("[queues.mail]\nconcurency = 5", "concurency", "Did you mean concurrency?"),
        ("[queues.mail]\nretri = 5", "retri", "Did you mean retry?"),
        ("[queues.mail]\nmax_attempts = 5", "max_attempts", 'retry = "standard(max_attempts=5)"'),
        ("[queues.mail.retry]\nconcurrency = 5", "retry", '[queues."mail.retry"]'),
        ("rety = 5", "rety", "Did you mean retry?"),
        ("[queues.mail]\ncolour = 5", "colour", "retry, retry_share, strict, max_retries_running, concurrency"),
        ('[queues.mail]\nstrict = true\nurl = "x"', "url", "above all tables"),
        ("[queues.mail.eu]\nstrict = true", "eu", '[queues."mail.eu"]'),
    ],
)
def test_an_unknown_key_is_refused_with_what_was_meant(text: str, wrong: str, instead: str) -> None:
    error = refusal(text)
    assert wrong in error.message
    assert instead in (error.hint or "")


def test_what_the_hint_points_at_is_there() -> None:
    assert (ROOT / "docs" / "settings.md").exists()


def test_tables_say_how_queues_are_treated() -> None:
    text = """
        [queues.mail]
        retry_share = 0.1
        concurrency = 5
        [queues."mail.eu"]
        strict = false
        max_retries_running = "none"
        [queues.slow]
        strict = "yes"
        concurrency = "7"
        retry_share = "0.5"
        [queues.plain]
    """
    assert queues(text) == {
        "mail": QueueSettings(retry_share=0.1, concurrency=5),
        "mail.eu": QueueSettings(is_strict=False, max_retries_running="none"),
        "slow": QueueSettings(is_strict=True, concurrency=7, retry_share=0.5),
        "plain": QueueSettings(),
    }


def test_queues_to_serve_and_tables_of_queues_stand_side_by_side() -> None:
    found = read_content("perdure.toml", b'queues = "mail:3,default"\n[queue_settings.mail]\nconcurrency = 5\n')
    assert found.settings == {"queues": ("mail:3", "default")}
    assert found.queues == {"mail": QueueSettings(concurrency=5)}


def test_the_text_form_of_queue_settings_is_taken_too() -> None:
    found = read_content("perdure.toml", b'queue_settings = "mail: concurrency=5"\n[queues.slow]\nstrict = true')
    assert found.queues == {"mail": QueueSettings(concurrency=5), "slow": QueueSettings(is_strict=True)}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[queues.mail]\nconcurrency = 0", "[queues.mail]: concurrency is 0"),
        ("[queues.mail]\nconcurrency = true", "[queues.mail]: concurrency is True"),
        ("[queues.mail]\nconcurrency = 1.5", "[queues.mail]: concurrency is 1.5"),
        ('[queues.mail]\nconcurrency = "many"', "[queues.mail]: concurrency is 'many'"),
        ("[queues.mail]\nretry_share = 2", "[queues.mail]: retry_share is 2"),
        ("[queues.mail]\nretry_share = true", "[queues.mail]: retry_share is True"),
        ("[queues.mail]\nretry_share = [1]", "[queues.mail]: retry_share is [1]"),
        ("[queues.mail]\nstrict = 1", "[queues.mail]: strict is 1"),
        ('[queues.mail]\nstrict = "perhaps"', "[queues.mail]: strict is 'perhaps'"),
        ("[queues.mail]\nstrict = true\nis_strict = true", "[queues.mail]: strict is given twice"),
        ('[queues."ma il"]\nstrict = true', "'ma il' is not the name of a queue"),
        ("[queues]\nmail = 5", "queues.mail is 5"),
        ("[[queues]]\nstrict = true", "queues cannot be"),
        ('queue_settings = "mail: concurrency=0"', "queue mail: concurrency is 0"),
        ('queue_settings = "mail: retry=patient"', "the retry policy of a queue cannot be set here"),
        ("[queues.mail]\nretry = 5", "[queues.mail]: retry is 5"),
        ('[queues.mail]\nretry = "standrad"', "[queues.mail]: retry is not a retry policy"),
        ('queue_settings = "mail: strict"\n[queues.mail]\nstrict = true', "speaks twice about the queue mail"),
    ],
)
def test_a_wrong_setting_of_a_queue_is_told_with_its_table(text: str, wrong: str) -> None:
    assert wrong in refusal(text).message


def test_the_file_gives_retry_policies_to_the_app_and_to_queues() -> None:
    text = """
        retry = "patient"
        [queues.mail]
        retry = "exponential(2s, max_attempts=12)"
        concurrency = 5
        [queue_settings."mail.eu"]
        retry = "none"
        [queues.empty]
        retry = " "
    """
    found = read_content("perdure.toml", text.encode())
    assert found.settings == {"retry": "patient"}
    assert found.queue_retries == {"mail": Retry.exponential("2s", max_attempts=12), "mail.eu": Retry.fixed(0)}
    assert found.queues == {
        "mail": QueueSettings(concurrency=5),
        "mail.eu": QueueSettings(),
        "empty": QueueSettings(),
    }


@pytest.mark.parametrize(
    ("text", "wrong", "instead"),
    [
        ('retry = "patiant"', "perdure.toml: retry is not a retry policy.", "Did you mean patient?"),
        ('retry = "fixed(5s, max_atempts=3)"', "at character 11", "Did you mean max_attempts?"),
        ('retry = "fixed("', "perdure.toml: retry", 'retry = "patient"'),
        ("retry = 5", "perdure.toml: retry cannot be 5", 'retry = "patient"'),
        ('[queues.mail]\nretry = "patiant"', "perdure.toml, [queues.mail]: retry", "Did you mean patient?"),
        ('[queues."a.b"]\nretry = "fixed("', 'perdure.toml, [queues."a.b"]: retry', 'retry = "patient"'),
        ("[queue_settings.mail]\nretry = true", "perdure.toml, [queue_settings.mail]: retry", 'retry = "patient"'),
    ],
)
def test_a_wrong_policy_is_told_with_file_place_and_what_to_write(text: str, wrong: str, instead: str) -> None:
    error = refusal(text)
    assert wrong in error.message
    assert instead in (error.hint or "")


@pytest.mark.parametrize(
    ("content", "wrong", "hint"),
    [
        (b"lease = 30s", "line 1", "quotes"),
        (b"a = 1\n\nb = \nc = 3", "line 3", "quotes"),
        (b'url = "x"\nurl = "y"', "TOML", "once"),
        (b'queues = ["mail"]\n[queues.mail]\nstrict = true', "line 2", "[queue_settings.mail]"),
        (b'url = "x"\nlog = "\xff"', "line 2", "UTF-8"),
        (b"a = " + b"[" * 100_000, "nested", "one level"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(content: bytes, wrong: str, hint: str) -> None:
    error = refusal(content)
    assert wrong in error.message
    assert hint in (error.hint or "")


@given(st.binary(max_size=60) | st.text("[]\"'=.,# \nqueuslam10-", max_size=60).map(str.encode))
def test_no_content_at_all_is_answered_otherwise_than_by_a_refusal(content: bytes) -> None:
    with contextlib.suppress(BadSetting):
        Settings(**read_content("perdure.toml", content).settings)


def test_without_a_file_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_configuration_file({}) is None


def test_the_file_of_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perdure.toml").write_text("concurrency = 5")
    monkeypatch.chdir(tmp_path)
    for environment in ({}, {"PERDURE_CONFIG": " "}):
        found = read_configuration_file(environment)
        assert found is not None
        assert (found.path, found.settings) == ("perdure.toml", {"concurrency": 5})


def test_a_named_file_is_read_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perdure.toml").write_text("concurrency = 5")
    (tmp_path / "other.toml").write_text("concurrency = 6")
    monkeypatch.chdir(tmp_path)
    found = read_configuration_file({"PERDURE_CONFIG": str(tmp_path / "other.toml")})
    assert found is not None
    assert found.settings == {"concurrency": 6}


def test_no_file_at_all_may_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perdure.toml").write_text("concurrency = 5")
    monkeypatch.chdir(tmp_path)
    assert read_configuration_file({"PERDURE_CONFIG": "none"}) is None


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"PERDURE_CONFIG names the file .*missing\.toml, which does not exist"):
        read_configuration_file({"PERDURE_CONFIG": str(tmp_path / "missing.toml")})


@pytest.mark.parametrize("name", ["directory.toml", "huge.toml", "a\0b"])
def test_what_cannot_be_a_file_of_settings_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory.toml").mkdir()
    (tmp_path / "huge.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(BadSetting, match="configuration file"):
        read_configuration_file({"PERDURE_CONFIG": f"{tmp_path}/{name}"})
