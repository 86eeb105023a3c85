"""Every setting, error, preset, command and public name is documented, and nothing that does not exist."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from datetime import timedelta

import click
import pytest
from tests.docs.pages import PAGES, page, prose, section, table_names

import perdure
from perdure import App, AsyncClient, Client, CurrentJob, Retry, Task, errors
from perdure.admin.forecast import forecast
from perdure.cli.main import root
from perdure.configuration.file import read_content
from perdure.configuration.settings import describe, variable_of
from perdure.model.outcome import Reason
from perdure.model.policy.presets import PRESETS
from perdure.model.queue.settings import FIELDS
from perdure.testing import Harness
from perdure.text.duration import format_duration

SETTINGS = describe()
ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
SHOWN_DELAYS = 8


def public_members(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def shown(value: object) -> str:
    match value:
        case None:
            return "unset"
        case timedelta():
            return format_duration(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


@pytest.mark.parametrize("name", [name for name, _, _ in SETTINGS])
def test_every_setting_is_documented_with_variable_default_and_meaning(name: str) -> None:
    meaning, default = next((meaning, default) for found, meaning, default in SETTINGS if found == name)
    row = f"| `{name}` | `{variable_of(name)}` | `{shown(default)}` | {meaning} |"
    assert row in page("settings.md").splitlines()


def test_no_setting_is_documented_that_does_not_exist() -> None:
    text = page("settings.md")
    assert table_names(text) == [name for name, _, _ in SETTINGS]
    known = {variable_of(name) for name, _, _ in SETTINGS} | {"PERDURE_APP", "PERDURE_CONFIG", "PERDURE_DEBUG"}
    everywhere = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert set(re.findall(r"PERDURE_[A-Z_]+", everywhere)) <= known


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_documented_with_what_it_is_a_kind_of(kind: type) -> None:
    bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
    assert f"| `{kind.__name__}` | {bases} | " in page("errors.md")


def test_no_error_is_documented_that_does_not_exist() -> None:
    assert set(table_names(page("errors.md"))) == {kind.__name__ for kind in ERRORS}


@pytest.mark.parametrize("name", perdure.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    pages = [page("api.md"), page("errors.md")]
    assert any(re.search(rf"`{name}\b", prose(text)) for text in pages)


def test_every_member_of_the_app_is_documented() -> None:
    documented = {name.removeprefix("app.") for name in table_names(section(page("api.md"), "App"))}
    built = {name for name in vars(App("sqlite://")) if not name.startswith("_")}
    assert documented == public_members(App) | built


def test_every_option_of_a_job_is_documented() -> None:
    names = set(table_names(section(page("api.md"), "Task and Bound")))
    options = {name for name in names if "." not in name}
    assert options == set(inspect.signature(Task.options).parameters) - {"self"}


def test_every_verb_of_the_clients_is_documented() -> None:
    verbs = set(table_names(section(page("api.md"), "Client and AsyncClient")))
    assert verbs == public_members(Client) == public_members(AsyncClient)


def test_every_member_of_the_current_job_is_documented() -> None:
    text = section(page("api.md"), "Values")
    for name in [*CurrentJob.__struct_fields__, "fence", "idempotency_key", "is_last"]:
        assert f"`{name}`" in text


def test_every_member_of_the_harness_is_documented() -> None:
    used = {
        re.split(r"[.(]", name.removeprefix("t."))[0] for name in table_names(page("testing.md")) if name[:2] == "t."
    }
    assert used == public_members(Harness) | {"clock"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_documented_with_its_limit_delays_and_text(name: str) -> None:
    policy = PRESETS[name].policy
    delays = " ".join(format_duration(policy.ceiling(n)) for n in range(1, SHOWN_DELAYS + 1)) + " …"
    shown_delays = delays if policy.max_retries else "–"
    row = f"| `{name}` | {policy.max_attempts} | {shown_delays} | `{policy.text}` |"
    assert row in page("retries.md").splitlines()


def test_no_preset_is_documented_that_does_not_exist() -> None:
    assert table_names(section(page("retries.md"), "Presets")) == list(PRESETS)


def test_how_long_every_preset_keeps_trying_is_documented() -> None:
    text = section(page("retries.md"), "How long they keep trying")
    assert table_names(text) == list(PRESETS)
    for name, preset in PRESETS.items():
        total = forecast(preset.policy).total
        spans = " | ".join(format_duration(span) for span in (total.least, total.expected, total.greatest))
        assert f"| `{name}` | {spans} |" in text.splitlines()


def test_every_alias_of_a_preset_is_documented() -> None:
    text = section(page("retries.md"), "Presets")
    for preset in PRESETS.values():
        for alias in preset.aliases:
            assert f"`{alias}` is another name of `{preset.name}`" in text


def test_every_option_of_a_policy_is_documented() -> None:
    text = page("retries.md")
    for option in set(inspect.signature(Retry.exponential).parameters) - {"base", "factor", "jitter"}:
        assert re.search(rf"`{option}\b", text), option


def test_every_curve_is_documented_with_its_usual_jitter() -> None:
    text = section(page("retries.md"), "Curves")
    for build in (Retry.exponential, Retry.linear, Retry.fixed, Retry.delays, Retry.function):
        usual = inspect.signature(build).parameters["jitter"].default
        written = f'"{usual}"' if isinstance(usual, str) else str(usual)
        assert re.search(rf"^\| `Retry\.{build.__name__}\(.*\| `{re.escape(written)}` \|$", text, re.MULTILINE)


def test_every_reason_of_a_dead_job_is_documented() -> None:
    text = page("dead-letters.md").partition("## ")[0]
    not_dead = {"snoozed", "released", "parked", "cancelled", "discarded"}
    assert set(table_names(text)) == set(Reason.__args__) - not_dead


def commands(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


COMMANDS = list(commands(root, "perdure"))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_is_documented(path: str) -> None:
    assert f"### {path}\n" in page("cli.md")


def test_every_command_that_the_docs_call_exists() -> None:
    known = {tuple(path.split()) for path in COMMANDS}
    prefixes = known | {path[:2] for path in known}
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        called = re.findall(r"(?:^|`)perdure ([a-z]+)(?: ([a-z]+)\b)?", text, re.MULTILINE)
        for first, second in called:
            is_known = ("perdure", first, second) in known or ("perdure", first) in prefixes
            assert is_known, f"{path.name}: perdure {first} {second}"
            if ("perdure", first) not in known and second:
                assert ("perdure", first, second) in known, f"{path.name}: perdure {first} {second}"


def test_the_configuration_file_of_the_docs_can_be_read_and_says_all_about_queues() -> None:
    [block] = re.findall(r"^```toml\n(.*?)^```$", page("settings.md"), re.DOTALL | re.MULTILINE)
    found = read_content("perdure.toml", block.encode())
    assert set(found.settings) == {"url", "concurrency", "lease", "retry", "hosts", "log"}
    assert set(found.queue_retries) == {"mail"}
    assert found.app == "shop.jobs:app"
    said = {name for queue in found.queues.values() for name in FIELDS if getattr(queue, name) is not None}
    assert said == set(FIELDS)
