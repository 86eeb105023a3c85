"""The program's entry: the code that a child process runs before it imports a task's module.

A worker imports its tasks after its entry module has prepared the process, for example with `django.setup()`. A child
process must do the same. The entry is the module that `perdure worker` or `perdure up` names, else the program's
`__main__`, which the child runs under another name as multiprocessing does, and the module that made the worker.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from types import FrameType, ModuleType

import msgspec

from perdure.runtime.context import running

MAIN_NAME = "__perdure_child__"
"""The `__name__` of the program's `__main__` in a child, so that `if __name__ == "__main__":` is false there."""

_DJANGO_SETTINGS = "DJANGO_SETTINGS_MODULE"
_ON_THE_WAY = ("perdure.app", "perdure.application.assembly", "perdure.runtime.", "asyncio.", "contextlib")
"""Modules whose frames lie between a program's own call and the place where its worker is made."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What a child does before it imports a task's module, in the order of the fields."""

    arguments: tuple[str, ...] = ()
    """`sys.argv` of the worker."""
    named: str | None = None
    """The module that the command line names. The program's `__main__` is then Perdure's own and is not run."""
    main_module: str | None = None
    """The module that was started with `python -m`."""
    main_file: str | None = None
    """The script that was started."""
    has_django: bool = False
    """Whether Django is set up in the worker, from settings that the environment names."""
    maker: str | None = None
    """The module that made the worker."""


class WorkReached(BaseException):
    """Raised in a child where the program starts to work: what stands before that has been run."""


_is_child = False
_runs_main = False


def current_entry(named: str | None = None, making: FrameType | None = None) -> Entry:
    """The entry of this process: `named` by the command line, and of the worker that the frame `making` makes."""
    main_module, main_file = _main()
    return Entry(
        arguments=tuple(sys.argv),
        named=named,
        main_module=main_module,
        main_file=main_file,
        has_django=_has_django(),
        maker=None if named is not None or making is None else _maker(making),
    )


def stop_in_child() -> None:
    """In a child, outside of an attempt: end what is running, since only the worker's own process runs workers."""
    if _is_child and running.get() is None:
        if threading.current_thread() is not threading.main_thread():
            # A thread that the entry has started can be of no use here. To raise in it would print a traceback.
            threading.Event().wait()
        raise WorkReached


def stop_main_in_child() -> None:
    """In a child that runs the program's `__main__`: end that run, since the program starts to work here."""
    if _runs_main and threading.current_thread() is threading.main_thread():
        raise WorkReached


def become_child() -> None:
    """This process is a child of a worker, for good."""
    global _is_child
    _is_child = True


def set_running_main(is_running: bool) -> None:
    """Say whether this process is a child that runs the program's `__main__` now."""
    global _runs_main
    _runs_main = is_running


def _maker(frame: FrameType | None) -> str | None:
    """The module that makes a worker, found from a frame of the making; None if a child cannot import it."""
    while frame is not None and _module_of(frame).startswith(_ON_THE_WAY):
        frame = frame.f_back
    if frame is None or _module_of(frame).startswith("perdure.") or not _is_importable(frame):
        return None
    return _module_of(frame)


def _main() -> tuple[str | None, str | None]:
    """How the program was started: (the module of `python -m`, None), (None, its script), or neither."""
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if isinstance(name, str) and name not in ("__main__", MAIN_NAME):
        return name, None
    return None, _readable_file(main)


def _readable_file(main: ModuleType | None) -> str | None:
    """The file of a script; None for shells, `python -c` and archives, which cannot be run again."""
    file = getattr(main, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) and os.path.isfile(file) else None


def _has_django() -> bool:
    registry = getattr(sys.modules.get("django.apps"), "apps", None)
    return bool(getattr(registry, "ready", False)) and _DJANGO_SETTINGS in os.environ


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_importable(frame: FrameType) -> bool:
    """Whether importing the frame's module by its name gives the very file that the frame runs."""
    name = _module_of(frame)
    if name in ("", "__main__", "__mp_main__", MAIN_NAME):
        return False
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return False
    return spec is not None and spec.origin == frame.f_globals.get("__file__")
