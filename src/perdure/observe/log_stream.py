"""How log lines are written: by the logger `perdure` to whoever listens, or a batch at once to a stream of our own.

Two forms: `console` for people, `json` for machines, one object a line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Literal, TextIO

import msgspec

from perdure.text.printable import json_escaped, one_line

_LONGEST_TRACEBACK = 20_000
"""How many characters of a traceback are written; its end says where it happened."""

logger = logging.getLogger("perdure")

Line = tuple[int, str, dict[str, object]]
"""A level, a sentence, and the same in fields."""


def configure(form: Literal["console", "json"], stream: TextIO) -> None:
    """Send the lines to a stream; for programs that have no logging of their own."""
    logger.handlers[:] = [_StreamHandler(form, stream)]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def write(lines: Sequence[Line]) -> None:
    """Hand lines over, as many at once as whoever listens can take."""
    # Names, errors and problems come from outside: none of them may look like a line of its own.
    enabled = [(level, one_line(text), fields) for level, text, fields in lines if logger.isEnabledFor(level)]
    listener = logger.handlers[0] if logger.handlers else None
    if enabled and isinstance(listener, _StreamHandler) and listener.is_alone():
        listener.write(enabled)
        return
    for line in enabled:
        logger.handle(_record(line))


def _record(line: Line) -> logging.LogRecord:
    # Not by `log`, which looks through the stack for its caller: that is always this place.
    level, message, fields = line
    return logger.makeRecord(logger.name, level, __file__, 0, message, (), None, "write", {"perdure": fields})


class _StreamHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream: its own by batches, what else is said to the logger one by one."""

    def __init__(self, form: Literal["console", "json"], stream: TextIO) -> None:
        super().__init__(stream)
        self.setFormatter(_Json() if form == "json" else _Console())

    def is_alone(self) -> bool:
        """Whether nobody else listens, and nothing but the logger's level chooses what is heard."""
        is_only = logger.handlers == [self] and not logger.propagate and not logger.disabled
        return is_only and not (logger.filters or self.filters or self.level)

    def write(self, lines: Sequence[Line]) -> None:
        # One record that says one thing after the other, since to make each of them costs as much as to write it.
        record = _record(lines[0])
        texts: list[str] = []
        self.acquire()
        try:
            for level, message, fields in lines:
                record.levelno, record.levelname = level, logging.getLevelName(level)
                record.msg = message
                vars(record)["perdure"] = fields
                texts += (self.format(record), self.terminator)
            self.stream.write("".join(texts))
            self.flush()
        except Exception:
            self.handleError(record)
        finally:
            self.release()


class _Console(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")
        self._last = (0.0, "")

    def format(self, record: logging.LogRecord) -> str:
        """The line; the traceback of an exception follows indented, so that no line of it passes for one of the log."""
        record.message = one_line(record.getMessage())
        record.asctime = self.formatTime(record)
        text = self.formatMessage(record)
        more = _traceback(self, record)
        return text if more is None else "\n    ".join([text, *map(one_line, more.splitlines())])

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        """The time; worked out once for lines of the same moment."""
        if record.created != self._last[0]:
            self._last = (record.created, super().formatTime(record, datefmt))
        return self._last[1]


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        fields.update(getattr(record, "perdure", {}))
        more = _traceback(self, record)
        if more is not None:
            fields["traceback"] = more
        # JSON has no raw line ends in it, but would let marks through that turn the text round.
        return json_escaped(_encode(fields))


def _encode(fields: dict[str, object]) -> str:
    try:
        return msgspec.json.encode(fields).decode()
    except UnicodeEncodeError:  # half a surrogate pair, in whatever was logged
        return json.dumps(fields, default=str)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    """The traceback of the record's exception and the stack that it was logged from; None if it has neither."""
    found = [formatter.formatException(record.exc_info)] if record.exc_info and record.exc_info[0] else []
    if record.stack_info:
        found.append(formatter.formatStack(record.stack_info))
    if not found:
        return None
    text = "\n".join(found)
    return text if len(text) <= _LONGEST_TRACEBACK else f"…{text[-_LONGEST_TRACEBACK:]}"
