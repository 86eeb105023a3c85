"""A progress bar for work on many jobs, on a terminal only, and on stderr so that stdout stays clean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int, *, is_wanted: bool) -> Iterator[Callable[[int], None]]:
    """Gives the function to call with how many more jobs are done."""
    if not (is_wanted and total > 0 and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console  # only for a terminal: rich is slow to import
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
