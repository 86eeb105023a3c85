"""The text form of what configuration says about queues: `mail: retry_share=0.1, concurrency=5; default: strict`."""

from __future__ import annotations

import re
from typing import Any

from perdure.errors import BadOption, BadSetting
from perdure.model.queue.fairness import is_queue_name
from perdure.model.queue.settings import FIELDS, LIMITS, QueueSettings

_EXAMPLE = "It looks like this: mail: retry_share=0.1, concurrency=5; default: strict"
_WORDS = {"strict": ("is_strict", True), "no-strict": ("is_strict", False)}
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_queue_settings(text: str) -> dict[str, QueueSettings]:
    """What is said about each queue; raises BadSetting, which names queue and key."""
    found: dict[str, QueueSettings] = {}
    for part in filter(None, map(str.strip, re.split(r"[;\n]", text))):
        name, colon, words = part.partition(":")
        queue = name.strip()
        if not colon or not is_queue_name(queue):
            raise BadSetting(f"queue_settings: {part[:80]!r} does not begin with the name of a queue.", _EXAMPLE)
        if queue in found:
            raise BadSetting(f"queue_settings speaks twice about the queue {queue}.", "Say everything in one place.")
        found[queue] = _read_words(queue, words)
    return found


def _read_words(queue: str, words: str) -> QueueSettings:
    values: dict[str, Any] = {}
    for word in filter(None, map(str.strip, words.split(","))):
        key, value = _read_word(queue, word)
        if key in values:
            raise BadSetting(f"queue_settings gives {key} of the queue {queue} twice.", "Give it once.")
        values[key] = value
    try:
        return QueueSettings(**values)
    except BadOption as error:
        raise BadSetting(f"queue_settings, queue {queue}: {error}") from None


def _read_word(queue: str, word: str) -> tuple[str, Any]:
    if word in _WORDS:
        return _WORDS[word]
    key, equals, text = map(str.strip, word.partition("="))
    key = "is_strict" if key == "strict" else key
    if key == "retry":
        raise BadSetting(
            f"queue_settings, queue {queue}: the retry policy of a queue cannot be set here.",
            f'Write it in perdure.toml, below [queues.{queue}]: retry = "patient"; or in code: app.queue(…, retry=…).',
        )
    if not equals or key not in FIELDS:
        known = ", ".join(["retry_share", "strict", *LIMITS])
        raise BadSetting(
            f"queue_settings, queue {queue}: {word[:80]!r} is not known.", f"Known are {known}. {_EXAMPLE}"
        )
    try:
        return key, read_value(key, text)
    except ValueError:
        raise BadSetting(f"queue_settings, queue {queue}: {key} is {text[:80]!r}, which cannot be read.") from None


def read_value(key: str, text: str) -> float | bool | str:
    """The value of a setting from its text; raises ValueError where it is none."""
    if key == "retry_share":
        return float(text)
    if key == "is_strict":
        if text.lower() not in _TRUTHS:
            raise ValueError(text)
        return _TRUTHS[text.lower()]
    return "none" if text.lower() == "none" else int(text)
