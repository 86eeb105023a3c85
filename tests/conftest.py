"""Decides for all tests what must not vary: the configuration file, and how Hypothesis draws its examples.

PERDURE_HYPOTHESIS selects the profile of the property tests:

- `fixed` (the default): every run draws the same examples, whatever ran before and however busy the machine is.
- `fresh`: every run draws new examples, PERDURE_EXAMPLES times as many (10 unless set). The header of the run shows the
  seed; PERDURE_SEED takes it to draw the same examples again. A failure also prints its example as a blob.

No profile has an example database, so that a run never depends on an earlier one. No profile has a deadline or a
health check that looks at the time: a slow machine is not a defect of the code.
"""

from __future__ import annotations

import os
import secrets

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from perdure.configuration.file import CONFIG_VARIABLE

# A perdure.toml in the working directory must not change the tests. Set before any module of tests is imported, as
# apps read their settings when they are made.
os.environ[CONFIG_VARIABLE] = "none"

PROFILE = os.environ.get("PERDURE_HYPOTHESIS", "fixed")
IS_FRESH = PROFILE == "fresh"
FACTOR = int(os.environ.get("PERDURE_EXAMPLES", "10")) if IS_FRESH else 1
SEED_VARIABLE = "PERDURE_SEED"
if IS_FRESH:
    # Kept in the environment, where the processes of pytest-xdist find the same seed.
    os.environ.setdefault(SEED_VARIABLE, str(secrets.randbits(32)))

# Hypothesis also draws constants that it finds in the source files of all loaded modules. Which modules are loaded
# depends on the tests that ran before in the same process, so fixed seeds alone would not draw the same examples. No
# setting turns this off; tests/unit/test_property_tests.py fails if this replacement has no effect any more.
providers._get_local_constants = Constants


def examples(count: int) -> int:
    """The number of examples of a property test: `count` with fixed seeds, many times as many with fresh ones."""
    return count * FACTOR


for name in ("fixed", "fresh"):
    settings.register_profile(
        name,
        derandomize=name == "fixed",
        database=None,
        deadline=None,
        max_examples=examples(100),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hands the seed to Hypothesis before its plugin reads the option."""
    if IS_FRESH and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = os.environ[SEED_VARIABLE]


def pytest_report_header(config: pytest.Config) -> str:
    if not IS_FRESH:
        return "property tests: fixed seeds"
    seed = config.option.hypothesis_seed
    return (
        f"property tests: fresh seeds, {FACTOR} times the examples; draw the same ones again with "
        f"PERDURE_HYPOTHESIS=fresh PERDURE_EXAMPLES={FACTOR} {SEED_VARIABLE}={seed}"
    )
