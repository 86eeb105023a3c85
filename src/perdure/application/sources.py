"""Where an app's settings come from: its code, the environment and the configuration file, and which of them holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from perdure.configuration.file import read_configuration_file
from perdure.configuration.settings import Settings, variable_of
from perdure.errors import BadPolicy, BadSetting, UsageError
from perdure.http.secrets import secret_entries
from perdure.model.policy.retry import Retry
from perdure.model.queue.settings import QueueOrigin, QueueSettings
from perdure.model.queue.text import read_queue_settings

SettingOrigin = Literal["code", "environment", "file"]


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an app, what they say about queues, and where each comes from."""

    settings: Settings
    origins: dict[str, SettingOrigin]
    """The settings that some place says; the others have their defaults."""
    queues: tuple[tuple[QueueOrigin, Mapping[str, QueueSettings]], ...]
    """What is said about queues, the first place winning value by value."""
    retry: Retry
    """The app's retry policy."""
    queue_retries: Mapping[str, Retry]
    """The retry policies that the configuration file gives to queues; they win over the code's."""
    file: str | None
    """The configuration file, where there is one."""

    @classmethod
    def read(
        cls,
        environment: Mapping[str, str],
        instead: Settings | None = None,
        *,
        retry: Retry | str | None = None,
        **given: Any,
    ) -> Configuration:
        """What environment and file say, unless `instead` is there; `given` values (not None), the code's, win."""
        own = None if retry is None else Retry.coerce(retry)
        # The settings show the policy that holds, if it has a text.
        given["retry"] = None if own is None else _text(own)
        given["secrets"] = secret_entries(given.get("secrets"))
        if instead is not None:
            return cls._of(instead.with_given(**given), own)
        file = read_configuration_file(environment)
        beneath = {} if file is None else file.settings
        settings = Settings.from_environment(environment, beneath=beneath, **given)
        origins: dict[str, SettingOrigin] = dict.fromkeys(beneath, "file")
        for name in Settings.__struct_fields__:
            if given.get(name) is not None:
                origins[name] = "code"
            elif environment.get(variable_of(name), "").strip():
                origins[name] = "environment"
        if own is not None:
            origins["retry"] = "code"
        said = settings.queue_settings if origins.get("queue_settings") == "environment" else None
        is_set = origins.get("retry") == "environment"
        return cls(
            settings=settings,
            origins=origins,
            queues=(
                ("environment", read_queue_settings(said or "")),
                ("file", {} if file is None else file.queues),
            ),
            retry=own or _read_policy(settings, variable_of("retry") if is_set else "retry"),
            queue_retries={} if file is None else file.queue_retries,
            file=None if file is None else file.path,
        )

    def place_of(self, name: str) -> str | None:
        """The file or the environment variable that sets a setting; None where the code does, or nobody."""
        match self.origins.get(name):
            case "environment":
                return variable_of(name)
            case "file":
                return self.file
            case _:
                return None

    @contextmanager
    def naming(self, *names: str) -> Iterator[None]:
        """A setting that is found wrong in here is told with the file or the variable that it stands in."""
        try:
            yield
        except UsageError as error:
            inside = [name for name in names if self.origins.get(name) == "file"]
            outside = [variable_of(name) for name in names if self.origins.get(name) == "environment"]
            if not inside and not outside:
                raise
            places = [*([f"{self.file}, {' or '.join(inside)}"] if inside else []), *outside]
            raise type(error)(f"{' or '.join(places)}: {error.message}", error.hint) from None

    @classmethod
    def _of(cls, settings: Settings, retry: Retry | None) -> Configuration:
        """These settings, made by code; neither the environment nor a file is looked at."""
        queues = read_queue_settings(settings.queue_settings or "")
        return cls(
            settings=settings,
            origins={},
            queues=(("configuration", queues),),
            retry=retry or _read_policy(settings, "retry"),
            queue_retries={},
            file=None,
        )


def _text(policy: Retry) -> str | None:
    try:
        return policy.text
    except BadPolicy:
        return None


def _read_policy(settings: Settings, name: str) -> Retry:
    """The policy of the setting `retry`; an error calls the setting by `name`. One in a file was checked with it."""
    try:
        return Retry.coerce(settings.retry)
    except BadPolicy as error:
        example = f"Set {name} to a preset such as patient, or to a policy such as exponential(2s, max_attempts=12)."
        raise BadSetting(f"{name} is not a retry policy. {error.message}", error.hint or example) from None
