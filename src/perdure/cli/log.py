"""Writes the log to stderr for commands that run until they are stopped."""

from __future__ import annotations

import logging
import sys


def show_log(form: str) -> None:
    """Write the log to stderr, unless the app has set up logging by itself."""
    from perdure.observe.log_stream import configure  # here, so that help does not wait for it

    if not logging.getLogger().handlers and not logging.getLogger("perdure").handlers:
        configure("json" if form == "json" else "console", sys.stderr)
