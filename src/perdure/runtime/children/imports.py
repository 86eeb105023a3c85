"""Imports in a child process: first the program's entry, once, and then handlers by module and name."""

from __future__ import annotations

import importlib
import importlib.util
import io
import sys
from collections.abc import Callable
from types import CodeType, ModuleType, TracebackType
from typing import Any

from perdure.model.failure import Failure, capture, clean
from perdure.runtime.children.entry import MAIN_NAME, Entry, WorkReached, set_running_main

_GUARD_HINT = (
    "A child process runs the program's main file again, under another name: put what starts the program under"
    ' `if __name__ == "__main__":`.'
)


class EntryFailed(Exception):  # noqa: N818 - the cause is the error
    """The entry could not be imported; the cause says why."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class Imports:
    """Finds handlers. Before the first one it imports the program's entry."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._main: ModuleType | None = None
        self.is_prepared = False
        """Whether the entry has been imported."""

    def handler(self, module: str, name: str) -> Callable[..., Any]:
        """The function of a task; raises EntryFailed, or what importing the task's module raises."""
        if not self.is_prepared:
            self._prepare()
            self.is_prepared = True
        found: Any = self._main_module() if module == "__main__" else importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        # The name leads to the task, whose function is the handler.
        function: Callable[..., Any] = getattr(found, "function", found)
        return function

    def _prepare(self) -> None:
        entry = self._entry
        sys.argv[:] = entry.arguments
        if entry.named is not None:
            _import(entry.named)
        elif entry.main_module is not None or entry.main_file is not None:
            self._main_module()
        if entry.has_django:
            _set_up_django()
        if entry.maker is not None:
            _import(entry.maker)

    def _main_module(self) -> ModuleType:
        if self._main is None:
            self._main = _run_main(self._entry)
        return self._main


def failure_of(error: BaseException, reference: str) -> Failure:
    """What is kept of a handler that could not be found: the user's own trace, and what was being imported."""
    cause, what, hint = error, reference, ""
    if isinstance(error, EntryFailed):
        assert error.__cause__ is not None, "an entry fails of something"
        cause, what, hint = error.__cause__, error.what, error.hint
    failure = capture(cause.with_traceback(_own_trace(cause.__traceback__)))
    message = clean(f"the child process could not import {what}: {failure}", 1000)
    return Failure(type="ImportError", message=f"{message} {hint}".strip(), trace=failure.trace, frame=failure.frame)


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except WorkReached:
        pass  # it makes a worker when it is imported: what stands before that has been run
    except BaseException as error:  # SystemExit included: the user's module may do anything
        raise EntryFailed(f"the entry module {module}") from error


def _set_up_django() -> None:
    """Do what a management command does before it runs: its `__main__` sets Django up inside its guard."""
    try:
        apps = importlib.import_module("django.apps").apps
        if not apps.ready:
            importlib.import_module("django").setup()
    except BaseException as error:
        raise EntryFailed("the Django apps of the worker") from error


def _run_main(entry: Entry) -> ModuleType:
    """Run the program's `__main__` under another name, up to where it starts to work."""
    what = f"the program's main {'module' if entry.main_module else 'file'} {entry.main_module or entry.main_file}"
    main = ModuleType(MAIN_NAME)
    before = sys.modules["__main__"]
    try:
        code = _code_of(entry, main)
        sys.modules[MAIN_NAME] = sys.modules["__main__"] = main
        set_running_main(True)
        exec(code, vars(main))
    except WorkReached:
        pass
    except BaseException as error:
        sys.modules["__main__"] = before
        raise EntryFailed(what, _GUARD_HINT) from error
    finally:
        set_running_main(False)
    return main


def _code_of(entry: Entry, main: ModuleType) -> CodeType:
    """The code of the program's `__main__`; `main` gets the names that the import system sets."""
    if entry.main_module is not None:
        spec = importlib.util.find_spec(entry.main_module)
        code = None if spec is None else spec.loader.get_code(entry.main_module)  # type: ignore[union-attr]
        if spec is None or code is None:
            raise ModuleNotFoundError(f"No module named {entry.main_module!r}", name=entry.main_module)
        main.__spec__, main.__package__, main.__file__ = spec, spec.parent, spec.origin
        return code  # type: ignore[no-any-return]
    if entry.main_file is None:
        raise ModuleNotFoundError("the program has no main file: it is a shell, `python -c` or an archive")
    main.__file__ = entry.main_file
    with io.open_code(entry.main_file) as file:
        return compile(file.read(), entry.main_file, "exec")


def _own_trace(trace: TracebackType | None) -> TracebackType | None:
    """The trace from the first frame that is neither Perdure's nor the import system's."""
    step = trace
    while step is not None and _is_foreign(step.tb_frame.f_code.co_filename):
        step = step.tb_next
    return step


def _is_foreign(filename: str) -> bool:
    return filename in (__file__, importlib.__file__) or filename.startswith("<frozen")
