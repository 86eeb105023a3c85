"""Which place holds: operator, environment, file, code or default; and what a wrong value is told with."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import App, Retry, Settings
from perdure.application.sources import Configuration
from perdure.errors import BadOption, BadPolicy, BadSetting, UsageError
from perdure.model.queue.fairness import Fairness
from perdure.model.queue.settings import QueueSettings


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose perdure.toml is read."""
    monkeypatch.delenv("PERDURE_CONFIG")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "perdure.toml"


def test_code_wins_over_environment_over_file_over_default(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write_text('url = "sqlite:///file.db"\nlease = "20s"\ngrace = "20s"\nmax_attempts_cap = 5')
    monkeypatch.setenv("PERDURE_URL", "sqlite:///environment.db")
    monkeypatch.setenv("PERDURE_LEASE", "10s")
    app = App("sqlite:///code.db", max_attempts_cap=7)
    found = app.settings
    assert (found.url, found.max_attempts_cap) == ("sqlite:///code.db", 7)
    assert (found.lease, found.grace, found.poll) == (*(timedelta(seconds=n) for n in (10, 20)), Settings().poll)
    assert app.configuration.origins == {
        "url": "code",
        "lease": "environment",
        "grace": "file",
        "max_attempts_cap": "code",
    }


def test_a_variable_that_clears_a_setting_wins_over_the_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write_text("metrics_port = 9000\nconcurrency = 5")
    monkeypatch.setenv("PERDURE_METRICS_PORT", "none")
    monkeypatch.setenv("PERDURE_CONCURRENCY", "")
    assert (App().settings.metrics_port, App().settings.concurrency) == (None, 5)


def test_of_a_queue_operator_environment_file_code_and_default_hold_in_this_order_value_by_value(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write_text("[queues.mail]\nconcurrency = 3\nmax_retries_running = 3\nretry_share = 0.3")
    monkeypatch.setenv("PERDURE_QUEUE_SETTINGS", "mail: concurrency=2, max_retries_running=2")
    app = App("sqlite://")
    app.queue("mail", concurrency=4, max_retries_running=4, retry_share=0.4, strict=True)
    found = app.registry.effective_queue("mail", QueueSettings(concurrency=1))
    assert found.fairness == Fairness(concurrency=1, max_retries_running=2, retry_share=0.3, is_strict=True)
    assert found.origins == {
        "concurrency": "operator",
        "max_retries_running": "environment",
        "retry_share": "file",
        "is_strict": "code",
    }
    assert set(app.registry.effective_queue("other").origins.values()) == {"default"}


def test_the_text_form_in_the_file_is_the_file_s_word(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write_text('queue_settings = "mail: concurrency=3, retry_share=0.3"')
    assert App().registry.effective_queue("mail").origins["concurrency"] == "file"
    monkeypatch.setenv("PERDURE_QUEUE_SETTINGS", "mail: concurrency=2")
    assert App().registry.fairness("mail") == Fairness(concurrency=2, retry_share=0.3)


def test_settings_given_by_code_take_the_place_of_environment_and_file(place: Path) -> None:
    place.write_text("not TOML at all")
    app = App("sqlite://", settings=Settings(queue_settings="mail: concurrency=5"))
    assert app.configuration.file is None
    assert app.registry.effective_queue("mail").origins["concurrency"] == "configuration"


def test_the_app_s_retry_policy_is_the_code_s_else_the_environment_s_else_the_file_s(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(app: App) -> tuple[Retry, str | None, str | None]:
        return app.configuration.retry, app.configuration.place_of("retry"), app.configuration.origins.get("retry")

    assert found(App()) == (Retry.preset("standard"), None, None)
    place.write_text('retry = "conservative"')
    assert found(App()) == (Retry.preset("conservative"), "perdure.toml", "file")
    monkeypatch.setenv("PERDURE_RETRY", " exponential(2s, max_attempts=12) ")
    assert found(App()) == (Retry.exponential("2s", max_attempts=12), "PERDURE_RETRY", "environment")
    assert found(App(retry="patient")) == (Retry.preset("patient"), None, "code")
    assert App(retry=Retry.fixed("7s")).settings.retry == "fixed(7s)"
    assert App(retry=Retry.function(lambda n: n)).configuration.origins["retry"] == "code"
    given = App(settings=Settings(retry="fixed"))
    assert found(given) == (Retry.preset("fixed"), None, None)
    assert found(App(settings=Settings(retry="fixed"), retry="patient"))[0] == Retry.preset("patient")


def test_none_as_the_retry_policy_is_the_preset_and_not_the_lack_of_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write_text('retry = "none"')
    assert App().configuration.retry == Retry.preset("immediate")
    place.write_text('retry = "patient"')
    monkeypatch.setenv("PERDURE_RETRY", "none")
    assert App().configuration.retry == Retry.preset("immediate")
    monkeypatch.setenv("PERDURE_RETRY", "")
    assert App().configuration.retry == Retry.preset("patient")


def test_the_file_s_policy_of_a_queue_wins_over_the_code_s_and_loses_to_the_task_s(place: Path) -> None:
    place.write_text('[queues.mail]\nretry = "patient"\n[queues.bulk]\nretry = "conservative"')
    app = App("sqlite://")
    app.queue("mail", retry="aggressive", concurrency=3, retry_queue="mail-retries")
    app.queue("other", retry="aggressive")

    @app.task(queue="mail")
    def send() -> None: ...

    @app.task(queue="mail", retry="fixed")
    def own() -> None: ...

    @app.task(queue="bulk")
    def bulk() -> None: ...

    @app.task(queue="other")
    def other() -> None: ...

    def found(task: str) -> tuple[Retry, str]:
        explanation = app.explain(task)
        return explanation.retry, next(line.origin for line in explanation.lines if line.name == "retry")

    assert found("send") == (Retry.preset("patient"), "queue (perdure.toml)")
    assert found("own") == (Retry.preset("fixed"), "task")
    assert found("bulk") == (Retry.preset("conservative"), "queue (perdure.toml)")
    assert found("other") == (Retry.preset("aggressive"), "queue")
    assert app.registry.queue_retry("mail") == (Retry.preset("patient"), "file")
    assert app.registry.queue_retry("other") == (Retry.preset("aggressive"), "code")
    assert app.registry.queue_retry("default") == (None, "default")
    # What else the code says about the queue stays.
    assert app.registry.fairness("mail") == Fairness(concurrency=3, retry_queue="mail-retries")


def test_the_origin_of_the_app_s_policy_names_variable_or_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def origin() -> str:
        app = App("sqlite://")
        app.task(name="work")(lambda: None)
        return next(line.origin for line in app.explain("work").lines if line.name == "retry")

    assert origin() == "app"
    place.write_text('retry = "patient"')
    assert origin() == "app (perdure.toml)"
    monkeypatch.setenv("PERDURE_RETRY", "fixed")
    assert origin() == "app (PERDURE_RETRY)"


@pytest.mark.parametrize(
    ("text", "hint"),
    [("patiant", "Did you mean patient"), ("fixed(5s", "Set PERDURE_RETRY to"), ("standard(max=5)", "max_attempts")],
)
def test_a_wrong_policy_in_the_environment_is_told_with_the_variable(
    place: Path, monkeypatch: pytest.MonkeyPatch, text: str, hint: str
) -> None:
    place.write_text('retry = "patient"')
    monkeypatch.setenv("PERDURE_RETRY", text)
    with pytest.raises(BadSetting, match=r"^PERDURE_RETRY is not a retry policy\.") as caught:
        App()
    assert hint in (caught.value.hint or "")
    assert "perdure.toml" not in str(caught.value)


def test_a_wrong_policy_in_settings_or_code_is_told_as_such(place: Path) -> None:
    place.write_text('retry = "patient"')
    with pytest.raises(BadSetting, match=r"^retry is not a retry policy\."):
        App(settings=Settings(retry="patiant"))
    with pytest.raises(BadPolicy, match="Did you mean patient"):
        App(retry="patiant")


def test_a_wrong_policy_in_the_file_is_refused_even_where_the_code_has_its_own(place: Path) -> None:
    place.write_text('retry = "patiant"')
    with pytest.raises(BadSetting, match=r"^perdure\.toml: retry is not a retry policy\."):
        App(retry="fixed")


def test_the_file_is_read_once_by_each_app(place: Path) -> None:
    place.write_text("concurrency = 5")
    first = App()
    place.write_text("concurrency = 6")
    assert (first.settings.concurrency, App().settings.concurrency) == (5, 6)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('http_allow = ["no such/thing"]', BadSetting),
        ('http_signing_secrets = ["whsec_?"]', BadSetting),
        ('secrets = ["a@b c=x"]', BadSetting),
        ('dead_letter = "nonsense"', BadOption),
        ('dead_letter_retry = "nonsense("', UsageError),
    ],
)
def test_what_is_found_wrong_later_is_told_with_the_file_too(place: Path, line: str, kind: type[UsageError]) -> None:
    place.write_text(line)
    with pytest.raises(kind, match=rf"^perdure\.toml, .*{line.partition(' ')[0]}"):
        App()


@pytest.mark.parametrize(
    ("name", "text"),
    [("DEAD_LETTER", "nonsense"), ("DEAD_LETTER_RETRY", "standrad"), ("HTTP_ALLOW", "no such/thing")],
)
def test_what_is_found_wrong_later_is_told_with_the_variable_too(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"PERDURE_{name}", text)
    with pytest.raises(UsageError, match=rf"^PERDURE_{name}: "):
        App()


def test_a_wrong_url_is_told_with_the_file_when_the_store_is_opened(place: Path) -> None:
    place.write_text('url = "mysql://x"')
    app = App()
    with pytest.raises(BadSetting, match=r"^perdure\.toml, url: .*mysql"):
        app.client()


def test_what_the_code_says_wrongly_is_not_laid_to_the_file(place: Path) -> None:
    place.write_text('url = "sqlite://"\ndead_letter = "queue:graves"')
    with pytest.raises(BadSetting) as caught:
        App("mysql://x").client()
    assert "perdure.toml" not in str(caught.value)
    with pytest.raises(UsageError) as wrong:
        App(dead_letter="nonsense")
    assert "perdure.toml" not in str(wrong.value)


def test_what_the_environment_says_wrongly_is_not_laid_to_the_file(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write_text("concurrency = 5")
    monkeypatch.setenv("PERDURE_CONCURRENCY", "many")
    with pytest.raises(BadSetting, match=r"^The environment variable PERDURE_CONCURRENCY is wrong: 'many'"):
        App()


def test_without_a_file_no_parser_is_loaded(tmp_path: Path) -> None:
    script = "import sys, perdure; perdure.App('sqlite://'); print('tomllib' in sys.modules)"
    environment = {"PERDURE_CONFIG": ""}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_configuration_can_be_read_from_any_environment(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('log = "json"')
    found = Configuration.read({"PERDURE_CONFIG": str(tmp_path / "mine.toml"), "PERDURE_LEASE": "5s"})
    assert (found.settings.log, found.settings.lease) == ("json", timedelta(seconds=5))
    assert found.origins == {"log": "file", "lease": "environment"}
