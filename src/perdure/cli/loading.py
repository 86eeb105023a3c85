"""Imports the user's app by `module:attribute`, and says plainly what is wrong when that fails."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from types import ModuleType

from perdure.app import App
from perdure.cli.session import URL_VARIABLE
from perdure.configuration import Configuration
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
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise _missing(error.name) from None
        raise _broken(name, error) from None
    except (Exception, SystemExit) as error:
        if isinstance(error, BadSetting):
            # Raises by itself where environment or file are wrong: that is no fault of the module.
            Configuration.read(os.environ)
        raise _broken(name, error) from None


def _broken(name: str, error: BaseException) -> BadOption:
    where = ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" at {error.filename}, line {error.lineno}"
    else:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_user_code(frame.filename)]
        if own:
            where = f" at {own[-1].filename}, line {own[-1].lineno}"
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return BadOption(f"The module {name!r} cannot be imported{where}: {said}", "Correct the module and run again.")


def _is_user_code(filename: str) -> bool:
    return filename != __file__ and not filename.startswith("<frozen") and importlib.__file__ != filename


def _named(module: ModuleType, attribute: str) -> App:
    found: object = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
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
