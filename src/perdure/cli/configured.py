"""What commands take from the environment and the configuration file before an app is there."""

from __future__ import annotations

import os


def configured_app() -> str | None:
    """The app that the configuration file names; PERDURE_APP and the command line come before it."""
    from perdure.configuration.file import read_configuration_file  # here, so that help does not wait for it

    file = read_configuration_file(os.environ)
    return None if file is None else file.app


def configured_metrics_port() -> int | None:
    """The port of metrics by the environment, else by the file."""
    from perdure.application.sources import Configuration

    return Configuration.read(os.environ).settings.metrics_port
