"""Where the demo's story appears: a live view on a terminal, plain lines everywhere else."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

import click
import msgspec

from perdure.cli.output import harmless
from perdure.text.plural import plural

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

Tone = Literal["plain", "good", "warning", "bad", "faint"]

_STYLES = {"plain": "", "good": "green", "warning": "yellow", "bad": "red", "faint": "bright_black"}
_STATES = ("succeeded", "running", "ready", "waiting", "dead", "cancelled")
_STATE_STYLES = {
    "succeeded": "green",
    "running": "cyan",
    "ready": "blue",
    "waiting": "yellow",
    "dead": "red",
    "cancelled": "bright_black",
}


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far the run is at one moment."""

    total: int
    ended: int
    states: dict[str, int]
    workers: int
    seconds: float


class View(Protocol):
    """What the story is told through."""

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def say(self, text: str, tone: Tone = "plain", *, at: float | None = None) -> None:
        """Print a line that stays; `at` is the second of the run at which it happened."""
        ...

    def show(self, standing: Standing) -> None:
        """Show how far the run is, where something can be shown again and again."""
        ...


def open_view(stream: TextIO) -> View:
    """The view that suits the stream."""
    return LiveView(stream) if is_lively(stream) else PlainView(stream)


def is_lively(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can draw over what it has drawn."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


class PlainView:
    """Lines, and one at each quarter; no control codes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._quarters = 1

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, text: str, tone: Tone = "plain", *, at: float | None = None) -> None:
        click.echo(harmless(text if at is None else f"{_moment(at)}  {text}"), file=self._stream)

    def show(self, standing: Standing) -> None:
        if standing.ended * 4 >= standing.total * self._quarters and self._quarters < 4:
            self._quarters = standing.ended * 4 // standing.total + 1
            self.say(f"{standing.ended} of {standing.total} jobs have ended", at=standing.seconds)


class LiveView:
    """Lines that scroll away above a bar and the numbers of each state."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # only for a terminal: rich is slow to import
        from rich.live import Live

        self._console = Console(file=stream, highlight=False, soft_wrap=False)
        self._live: Live = Live(console=self._console, transient=True, auto_refresh=False)

    def __enter__(self) -> View:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, text: str, tone: Tone = "plain", *, at: float | None = None) -> None:
        from rich.table import Table
        from rich.text import Text

        line = Text(harmless(text), style=_STYLES[tone])
        if at is None:
            self._console.print(line)
            return
        # Two columns, so that what does not fit goes on below its own beginning.
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_row(Text(_moment(at), style="bright_black", no_wrap=True), line)
        self._console.print(row)

    def show(self, standing: Standing) -> None:
        self._live.update(_drawn(standing), refresh=True)


def _drawn(standing: Standing) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = Table.grid(padding=(0, 1))
    percent = 100 * standing.ended // max(standing.total, 1)
    bar.add_row(
        ProgressBar(total=standing.total, completed=standing.ended, width=44),
        Text(f"{percent:3d} %  {standing.ended}/{standing.total}", style="bold"),
        Text(f"{standing.seconds:.0f} s · {plural(standing.workers, 'worker')}", style="bright_black"),
    )
    numbers = Text()
    for state in _STATES:
        numbers.append(f"{state} ", style=_STATE_STYLES[state])
        numbers.append(f"{standing.states.get(state, 0):<5}", style="bold")
    return Group(Text(), bar, numbers)


def _moment(seconds: float) -> str:
    return f"{seconds:5.1f} s"
