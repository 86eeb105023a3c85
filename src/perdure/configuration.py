"""Where an app's settings come from: its code, the environment and the configuration file, and which of them holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from perdure.configuration_file import read_configuration_file
from perdure.errors import UsageError
from perdure.model.queue_settings import QueueOrigin, QueueSettings
from perdure.model.queue_text import read_queue_settings
from perdure.settings import Settings, variable_of

SettingOrigin = Literal["code", "environment", "file"]


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an app, what they say about queues, and where each comes from."""

    settings: Settings
    origins: dict[str, SettingOrigin]
    """The settings that some place says; the others have their defaults."""
    queues: tuple[tuple[QueueOrigin, Mapping[str, QueueSettings]], ...]
    """What is said about queues, the first place winning value by value."""
    file: str | None
    """The configuration file, where there is one."""

    @classmethod
    def read(cls, environment: Mapping[str, str], instead: Settings | None = None, **given: Any) -> Configuration:
        """What environment and file say, unless `instead` is there; `given` values (not None), the code's, win."""
        if instead is not None:
            return cls._of(instead.with_given(**given))
        file = read_configuration_file(environment)
        beneath = {} if file is None else file.settings
        settings = Settings.from_environment(environment, beneath=beneath, **given)
        origins: dict[str, SettingOrigin] = dict.fromkeys(beneath, "file")
        for name in Settings.__struct_fields__:
            if given.get(name) is not None:
                origins[name] = "code"
            elif environment.get(variable_of(name), "").strip():
                origins[name] = "environment"
        said = settings.queue_settings if origins.get("queue_settings") == "environment" else None
        return cls(
            settings=settings,
            origins=origins,
            queues=(
                ("environment", read_queue_settings(said or "")),
                ("file", {} if file is None else file.queues),
            ),
            file=None if file is None else file.path,
        )

    @contextmanager
    def naming(self, *names: str) -> Iterator[None]:
        """A setting that is found wrong in here is told with the file that it stands in."""
        try:
            yield
        except UsageError as error:
            inside = [name for name in names if self.origins.get(name) == "file"]
            if not inside:
                raise
            raise type(error)(f"{self.file}, {' or '.join(inside)}: {error.message}", error.hint) from None

    @classmethod
    def _of(cls, settings: Settings) -> Configuration:
        """These settings, made by code; neither the environment nor a file is looked at."""
        queues = read_queue_settings(settings.queue_settings or "")
        return cls(settings=settings, origins={}, queues=(("configuration", queues),), file=None)
