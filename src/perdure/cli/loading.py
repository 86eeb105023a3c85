"""Imports the user's app by `module:attribute`; when that fails, shows the user's own traceback and says what to do."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

from perdure.app import App
from perdure.application.sources import Configuration
from perdure.cli.session import URL_VARIABLE
from perdure.cli.user_trace import one_line, own_place, own_trace
from perdure.errors import BadOption, BadSetting

_FORM = "Name it as module:attribute, for example: myapp.jobs:app"


def load_app(name: str, *, url: str | None = None) -> App:
    """The app that `name` means; the working directory is searched first. `url` wins over PERDURE_URL."""
    if url is not None:
        # The app reads its URL when it is built, which is while its module is imported.
        os.environ[URL_VARIABLE] = url
    module_name, attribute = _read_name(name)
    module = _import(module_name)
    app = _named(module, attribute) if attribute else _only(module)
    app.registry.entry_module = module_name
    if url is not None and app.settings.url != url:
        raise BadOption(
            f"The app {name} names its own store, so --url does nothing.",
            f"Leave --url out, or let the app take {URL_VARIABLE}: App() without a URL.",
        )
    return app


def check_module(name: str) -> None:
    """Raise when the module of `name` is not there; imports nothing."""
    module_name, _ = _read_name(name)
    package = module_name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        raise _missing(package)


def _read_name(name: str) -> tuple[str, str]:
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")) or module.endswith(".py"):
        raise BadOption(f"{name!r} does not name an app.", _FORM)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return module, attribute


def _missing(module: str) -> BadOption:
    hint = f"Run the command in the directory that holds it, or install it. {_FORM}"
    return BadOption(f"There is no module {module!r}.", hint)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit included, and whatever else a module may raise
        if isinstance(error, ModuleNotFoundError) and error.name is not None and own_place(error) is None:
            raise _missing(error.name) from None
        if isinstance(error, BadSetting):
            # Raises by itself where environment or file are wrong: that is no fault of the module.
            Configuration.read(os.environ)
        raise AppNotLoaded(name, error) from None


class AppNotLoaded(BadOption):
    """The module of the app cannot be imported; `trace` is the traceback, the user's own frames alone."""

    def __init__(self, module: str, error: BaseException) -> None:
        place = own_place(error)
        where = "" if place is None else f" at {place[0]}, line {place[1]}"
        super().__init__(f"The module {module!r} cannot be imported{where}: {one_line(error)}", _hint(error))
        self.trace = own_trace(error)


def _hint(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return 'A module must not end the program when it is imported: put that under `if __name__ == "__main__":`.'
    if isinstance(error, ImportError | AttributeError) and "partially initialized module" in one_line(error):
        return "Two modules import each other: move what both need into a third, or import inside a function."
    if isinstance(error, ModuleNotFoundError):
        return "Install the missing package, or run the command where its module can be found."
    return "Correct the module and run again."


def _named(module: ModuleType, attribute: str) -> App:
    found: object = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part, None)
        except Exception as error:  # a module or an object may compute its attributes
            raise AppNotLoaded(module.__name__, error) from None
    if isinstance(found, App):
        return found
    apps = _apps(module)
    hint = f"It has: {', '.join(f'{module.__name__}:{name}' for name in apps)}" if apps else f"It holds no App. {_FORM}"
    what = "does not exist" if found is None else f"is a {type(found).__name__}, not an App"
    raise BadOption(f"{module.__name__}:{attribute} {what}.", hint)


def _only(module: ModuleType) -> App:
    apps = _apps(module)
    if len(apps) == 1:
        return next(iter(apps.values()))
    if not apps:
        raise BadOption(f"The module {module.__name__!r} holds no App.", _FORM)
    raise BadOption(
        f"The module {module.__name__!r} holds several apps.",
        f"Name one: {', '.join(f'{module.__name__}:{name}' for name in apps)}",
    )


def _apps(module: ModuleType) -> dict[str, App]:
    return {name: value for name, value in vars(module).items() if isinstance(value, App)}
