"""Keeps a perdure.toml that happens to lie in the working directory away from the tests."""

from __future__ import annotations

import os

from perdure.configuration_file import CONFIG_VARIABLE

# Set before any module of tests is imported, as apps read their settings when they are made.
os.environ[CONFIG_VARIABLE] = "none"
