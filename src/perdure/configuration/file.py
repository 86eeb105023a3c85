"""Reads perdure.toml: finds it, checks each key and value, and tells what is wrong with file, key and what to write.

Every setting stands at the top level by its name; a table `[queues.mail]` says how one queue is treated, and a table
`[secrets.stripe]` has a secret and its hosts.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from perdure.configuration.settings import Settings, inner_kind, setting_kinds
from perdure.configuration.settings import read_value as read_setting
from perdure.errors import BadDuration, BadOption, BadPolicy, BadSetting
from perdure.model.policy.retry import Retry
from perdure.model.queue.fairness import is_queue_name
from perdure.model.queue.settings import LIMITS, QueueSettings
from perdure.model.queue.text import read_queue_settings, read_value
from perdure.system.trusted_file import distrust
from perdure.text.credentials import Discreet
from perdure.text.shown import shown
from perdure.text.suggestion import suggestion

CONFIG_VARIABLE = "PERDURE_CONFIG"
DEFAULT_FILE = "perdure.toml"

_LARGEST = 1024 * 1024
_QUEUE_KEYS = ("retry", "retry_share", "strict", *LIMITS)
_TABLES = ("queues", "queue_settings")
_POLICY_EXAMPLE = (
    'Write a preset or a policy: retry = "patient", or retry = "exponential(2s, cap=10m, max_attempts=12)"'
)
_SECRET = ("url", "http_signing_secrets", "secrets", "tokens", "dead_letter")
_SECRET_HINT = 'Below [secrets.NAME] write value = "…" and hosts = ["api.example.com"].'


class ConfigurationFile(Discreet, msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration file says, read and checked."""

    _secrets = frozenset(("settings",))

    path: str
    """The file as it was named."""
    settings: dict[str, Any]
    """The settings that stand in it, by name."""
    queues: dict[str, QueueSettings]
    queue_retries: dict[str, Retry]
    """The retry policies of single queues."""
    app: str | None
    """The app that commands use where they are given none."""


def read_configuration_file(environment: Mapping[str, str]) -> ConfigurationFile | None:
    """The file that PERDURE_CONFIG names, else perdure.toml in the working directory; None where there is none."""
    named = environment.get(CONFIG_VARIABLE, "").strip()
    if named.lower() in ("none", "unset"):
        return None
    content = _content(named or DEFAULT_FILE, is_named=bool(named))
    return None if content is None else read_content(named or DEFAULT_FILE, content)


def read_content(path: str, content: bytes) -> ConfigurationFile:
    """What the content of a file says; raises BadSetting, which names file and key."""
    document = _parsed(path, content)
    app = document.pop("app", None)
    if app is not None and not isinstance(app, str):
        raise BadSetting(f"{path}: app is {shown(app)}.", 'Write the name of your app: app = "myapp:app"')
    queue_retries = _queue_retries(path, document)
    queues = _queues(path, document)
    if isinstance(document.get("secrets"), dict):
        document["secrets"] = _secrets(path, document["secrets"])
    kinds = setting_kinds()
    settings: dict[str, Any] = {}
    for name, value in document.items():
        if name not in kinds:
            _refuse_key(path, name, value, [*kinds, "app"])
        # An empty text is as good as none, as with variables.
        if not isinstance(value, str) or value.strip():
            settings[name] = _setting(path, name, kinds[name], value)
    if "retry" in settings:
        _policy(path, settings["retry"])
    return ConfigurationFile(path=path, settings=settings, queues=queues, queue_retries=queue_retries, app=app or None)


def _content(path: str, *, is_named: bool) -> bytes | None:
    try:
        with Path(path).open("rb") as file:
            why = distrust(path, os.fstat(file.fileno()), is_named=is_named)
            content = b"" if why else file.read(_LARGEST + 1)
    except FileNotFoundError:
        if not is_named:
            return None
        raise BadSetting(
            f"{CONFIG_VARIABLE} names the file {path}, which does not exist.",
            f"Name a file that does, or unset {CONFIG_VARIABLE}: then {DEFAULT_FILE} is read where there is one.",
        ) from None
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or error
        raise BadSetting(f"The configuration file {path} cannot be read: {said}.") from None
    if why is not None:
        raise _distrusted(path, why)
    if len(content) > _LARGEST:
        raise BadSetting(f"The configuration file {path} is larger than a megabyte.", "Name a file of settings.")
    return content


def _distrusted(path: str, why: str) -> BadSetting:
    full = Path(path).absolute()
    return BadSetting(
        f"The configuration file {full} is not read, because {why}: another user could have written it.",
        f"Take that right away with chmod or chown, or say that you mean this file: {CONFIG_VARIABLE}={full}."
        f" {CONFIG_VARIABLE}=none reads no file. A file that everybody may write is never read.",
    )


def _parsed(path: str, content: bytes) -> dict[str, Any]:
    import tomllib  # here, so that programs without such a file do not wait for it

    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadSetting(f"{path}, line {line}: what stands there is no UTF-8.", "Save the file as UTF-8.") from None
    except RecursionError:
        raise BadSetting(f"{path} is nested too deeply.", "Settings need one level, and queues two.") from None
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        hint = 'Texts have quotes: url = "sqlite:///jobs.db", lease = "30s", concurrency = 20.'
        if "twice" in said or "overwrite" in said:
            hint = (
                "Say each thing once. Where `queues` lists the queues to serve, "
                "tables of queues are called [queue_settings.mail]."
            )
        raise BadSetting(f"{path} cannot be read as TOML: {said}.", hint) from None


def _queue_retries(path: str, document: dict[str, Any]) -> dict[str, Retry]:
    """Takes the retry policies out of the tables of queues."""
    found: dict[str, Retry] = {}
    for key in _TABLES:
        table = document.get(key)
        for name, words in table.items() if isinstance(table, dict) else ():
            if not isinstance(words, dict) or "retry" not in words or isinstance(words["retry"], dict):
                continue
            said = words.pop("retry")
            if not isinstance(said, str) or said.strip():
                found[name] = _policy(f"{path}, [{key}.{_quoted(name)}]", said)
    return found


def _policy(place: str, said: object) -> Retry:
    if not isinstance(said, str):
        raise BadSetting(f"{place}: retry is {shown(said)}, which is not a retry policy.", _POLICY_EXAMPLE)
    try:
        return Retry.parse(said)
    except BadPolicy as error:
        raise BadSetting(
            f"{place}: retry is not a retry policy. {error.message}", error.hint or _POLICY_EXAMPLE
        ) from None


def _queues(path: str, document: dict[str, Any]) -> dict[str, QueueSettings]:
    """Takes the tables of queues out of the document; a text in their place stays there, checked."""
    found: dict[str, QueueSettings] = {}
    for key in _TABLES:
        said = document.get(key)
        more: dict[str, QueueSettings] = {}
        if isinstance(said, dict):
            more = {name: _queue(path, key, name, words) for name, words in document.pop(key).items()}
        elif key == "queue_settings" and isinstance(said, str):
            try:
                more = read_queue_settings(said)
            except BadSetting as error:
                raise BadSetting(f"{path}: {error.message}", error.hint) from None
        for name in found.keys() & more.keys():
            raise BadSetting(f"{path} speaks twice about the queue {name}.", f"Say it all in [queues.{name}].")
        found |= more
    return found


def _secrets(path: str, tables: dict[str, Any]) -> list[str]:
    """The tables of secrets in the form that the setting has; no message repeats a value."""
    found: list[str] = []
    for name, table in tables.items():
        place = f"{path}, [secrets.{_quoted(name)}]"
        if not isinstance(table, dict) or table.keys() != {"value", "hosts"}:
            raise BadSetting(f"{place} does not have a value and hosts, and nothing else.", _SECRET_HINT)
        values = [table["value"]] if isinstance(table["value"], str) else table["value"]
        hosts = [table["hosts"]] if isinstance(table["hosts"], str) else table["hosts"]
        for what, texts in (("value", values), ("hosts", hosts)):
            if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
                raise BadSetting(f"{place}: {what} is neither a text nor a list of texts.", _SECRET_HINT)
        if any(sign in name for sign in "@=") or any(sign in host for host in hosts for sign in "+="):
            raise BadSetting(f"{place}: the name or a host has a character that it cannot have.", _SECRET_HINT)
        found += [f"{name}@{'+'.join(hosts)}={value}" for value in values]
    return found


def _queue(path: str, key: str, name: str, words: object) -> QueueSettings:
    place = f"{path}, [{key}.{_quoted(name)}]"
    if not is_queue_name(name):
        raise BadSetting(
            f"{place}: {shown(name)} is not the name of a queue.",
            "Names are 1 to 128 letters, digits, points, hyphens and underscores.",
        )
    if not isinstance(words, dict):
        hint = f"Write a table: [{key}.{_quoted(name)}] and below it, for example, concurrency = 5"
        raise BadSetting(f"{path}: {key}.{_quoted(name)} is {shown(words)}.", hint)
    values: dict[str, Any] = {}
    for word, value in words.items():
        field = "is_strict" if word == "strict" else word
        if word not in (*_QUEUE_KEYS, "is_strict") or isinstance(value, dict):
            _refuse_queue_key(place, f"{key}.", name, word, value)
        if field in values:
            raise BadSetting(f"{place}: strict is given twice.", "Give it once.")
        values[field] = _queue_value(place, word, field, value)
    try:
        return QueueSettings(**values)
    except BadOption as error:
        raise BadSetting(f"{place}: {error.message}", error.hint) from None


def _queue_value(place: str, word: str, field: str, value: object) -> object:
    examples = {"retry_share": "retry_share = 0.1", "is_strict": "strict = true"}
    try:
        if field == "is_strict" and not isinstance(value, str | bool):
            raise ValueError(value)
        return read_value(field, value.strip()) if isinstance(value, str) else value
    except ValueError:
        example = examples.get(field, f'{word} = 5, or {word} = "none" for no limit')
        raise BadSetting(f"{place}: {word} is {shown(value)}, which cannot be read.", f"Write {example}") from None


def _setting(path: str, name: str, kind: object, value: object) -> Any:
    try:
        found: Any = read_setting(kind, value.strip() if isinstance(value, str) else value, what=name)
    except BadDuration as error:
        raise BadSetting(f"{path}: {error.message}", error.hint) from None
    except (ValueError, OverflowError):
        what = "what it is" if name in _SECRET else shown(value)
        raise BadSetting(f"{path}: {name} cannot be {what}.", _example(name, kind)) from None
    try:
        # Each alone, so that what is refused for its value is told with the file, too.
        return getattr(Settings(**{name: found}), name)
    except BadSetting as error:
        raise BadSetting(f"{path}: {error.message}", error.hint) from None


def _example(name: str, kind: object) -> str:
    if name == "retry":
        return _POLICY_EXAMPLE
    wanted = inner_kind(kind)
    if typing.get_origin(wanted) is tuple:
        return f'Write texts in brackets: {name} = ["one", "two"]'
    words, example = {
        int: ("a whole number", "20"),
        float: ("a number", "0.5"),
        bool: ("true or false", "true"),
        timedelta: ("a duration", '"30s"'),
    }.get(wanted if isinstance(wanted, type) else str, ("a text in quotes", '"…"'))
    return f"Write {words}: {name} = {example}"


def _refuse_key(path: str, name: str, value: object, known: list[str]) -> NoReturn:
    near = _near(name, [*known, "queues"])
    if near is not None:
        hint = f"Did you mean {near}?"
    elif isinstance(value, dict):
        hint = "Settings stand at the top of the file; the only tables are [queues.NAME] and [secrets.NAME]."
    else:
        hint = "The settings are listed in docs/settings.md."
    raise BadSetting(f"{path}: {shown(name)} is not a setting.", hint)


def _refuse_queue_key(place: str, table: str, queue: str, word: str, value: object) -> NoReturn:
    near = _near(word, list(_QUEUE_KEYS))
    if isinstance(value, dict):
        hint = f'A name with a point stands in quotes: [{table}"{queue}.{word}"]'
    elif word in ("max_attempts", "max_retries"):
        hint = f'The limit is a part of the policy: retry = "standard({word}={shown(value)})"'
    elif word in setting_kinds() or word == "app":
        hint = f"{word} is a setting of the app: write it at the top of the file, above all tables."
    elif near is not None:
        hint = f"Did you mean {near}?"
    else:
        hint = f"Known are {', '.join(_QUEUE_KEYS)}."
    raise BadSetting(f"{place}: {shown(word)} is not a setting of a queue.", hint)


def _near(name: str, known: list[str]) -> str | None:
    meant = name.lower().replace("-", "_").removeprefix("perdure_")
    return suggestion(meant, known)


def _quoted(name: str) -> str:
    """The name as a key of a table's head."""
    return name if all(sign.isalnum() or sign in "_-" for sign in name) and name.isascii() and name else f'"{name}"'
