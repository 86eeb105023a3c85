"""One run of a command: which store it talks to, and whether it prints for people or for programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.cli import output
from perdure.errors import EngineUnreachable

if TYPE_CHECKING:
    from perdure.admin.payload_view import PayloadView
    from perdure.app import App
    from perdure.store import Store

URL_VARIABLE = "PERDURE_URL"
APP_VARIABLE = "PERDURE_APP"
HANDED_URL = "PERDURE_HANDED_URL"
"""How a command hands its --url to the processes that it starts; they take it out of their environment."""


class Session:
    """What the options that every command has say about this run."""

    def __init__(self, *, url: str | None, is_json: bool, app: str | None = None) -> None:
        self._url = url
        self._app = app
        self._redact: tuple[str, ...] | None = ("default",)
        self.is_json = is_json

    @property
    def url(self) -> str | None:
        """The store that --url names."""
        return self._url

    @property
    def has_app(self) -> bool:
        """Whether the user named an app, so that its tasks are known."""
        return self._app is not None

    @property
    def arguments(self) -> list[str]:
        """The same options as arguments of another command, but for --url: see `variables`."""
        return ["--json"] if self.is_json else []

    @property
    def variables(self) -> dict[str, str]:
        """What another command needs in its environment to have the same --url: arguments are seen by everybody."""
        return {} if self._url is None else {HANDED_URL: self._url}

    def named(self, app: str) -> Session:
        """The same run with this app."""
        return Session(url=self._url, is_json=self.is_json, app=app)

    def without_app(self, app: App | None) -> Session:
        """The same run without the user's app; on its store, where that app is given."""
        return Session(url=self._url if app is None else app.settings.url, is_json=self.is_json)

    @contextmanager
    def app(self, *, may_create: bool = False, **options: Any) -> Iterator[App]:
        """The user's app, or one without tasks on the store's URL; closed afterwards.

        Without `may_create` a SQLite file that does not exist is an error: looking must not make files.
        """
        from perdure.app import App  # here, so that help does not wait for it

        if self._app is not None:
            from perdure.cli.loading import load_app

            opened = load_app(self._app, url=self._url)
        else:
            opened = App(self._url, **options)
        self._redact = opened.settings.redact
        try:
            if not may_create:
                _require_file(opened.settings.url)
            yield opened
        finally:
            opened.close()

    @contextmanager
    def store(self, **options: Any) -> Iterator[Store]:
        """The open store of an existing installation."""
        with self.app(**options) as opened:
            yield opened.store

    def view(self, *, reveals: bool = False) -> PayloadView:
        """What is shown of payloads: all but secrets, by the rules of the app that was opened last."""
        from perdure.admin.payload_view import PayloadView  # here, so that help does not wait for it
        from perdure.model.payload.redaction import Redactor

        return PayloadView(redactor=None if reveals else Redactor(self._redact))

    def emit(self, document: Any) -> None:
        """Print for a program."""
        output.emit(document)


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite URL; None for other engines and for stores in memory."""
    scheme, found, rest = url.partition("://")
    if not found or scheme.lower() != "sqlite":
        return None
    path = rest.removeprefix("/")
    is_file = rest.startswith("/") and path not in ("", ":memory:")
    return Path(path) if is_file else None


def _require_file(url: str) -> None:
    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise EngineUnreachable(
            f"There is no store at {url}: the file {path} does not exist.",
            f"Say where the jobs are with --url or {URL_VARIABLE}; 'perdure enqueue' makes the file, "
            "'perdure demo' shows how it all works.",
        )
