"""The presets: retry policies with a name, each one documented behaviour kept exactly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from perdure.errors import BadPolicy
from perdure.model.policy.retry import Retry
from perdure.text.shown import shown
from perdure.text.suggestion import near_names

DEFAULT_PRESET = "standard"


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A policy and the name it goes by; the policy itself does not remember the name."""

    name: str
    origin: str
    """Whose documented behaviour it keeps."""
    description: str
    policy: Retry
    aliases: tuple[str, ...] = ()
    """Other names that mean the same preset."""


def find_preset(name: object) -> Preset:
    """The preset of that name or alias."""
    found = NAMED.get(name) if isinstance(name, str) else None
    if found is None:
        raise BadPolicy(f"There is no preset {shown(name)}.", _suggestion(name))
    return found


def _suggestion(name: object) -> str:
    near = near_names(name, NAMED)
    if near:
        return f"Did you mean {' or '.join(repr(each) for each in near)}?"
    return f"The presets are {', '.join(PRESETS)}."


_ALL = (
    Preset(
        name="standard",
        origin="retry and back-off policy for job queues",
        description="Doubles from half a second up to 30 s, spread over the whole delay. The default.",
        policy=Retry.exponential("500ms", cap="30s"),
    ),
    Preset(
        name="standard-table",
        origin="retry and back-off policy for job queues, as its table is printed",
        description="As standard, but goes from 8 s to 30 s in one step.",
        policy=Retry.delays(["500ms", "1s", "2s", "4s", "8s", "30s"], jitter="full", max_attempts=4),
    ),
    Preset(
        name="conservative",
        origin="retry and back-off policy for job queues, for services that need rest",
        description="More attempts, further apart: doubles from 1 s up to a minute.",
        policy=Retry.exponential("1s", cap="60s", max_attempts=6),
    ),
    Preset(
        name="aggressive",
        origin="retry and back-off policy for job queues, for low latency",
        description="Few attempts, close together: doubles from a tenth of a second up to 5 s.",
        policy=Retry.exponential("100ms", cap="5s", max_attempts=3),
    ),
    Preset(
        name="one-shot",
        origin="retry and back-off policy for job queues; TaskHarbor's fail fast",
        description="One attempt, no retry.",
        policy=Retry.never_retry(),
    ),
    Preset(
        name="quadrupling",
        origin="retry and requeue strategy against starvation",
        description="1 s, 4 s, 16 s, 64 s, … without a cap and without jitter.",
        policy=Retry.exponential("1s", factor=4, jitter="none"),
    ),
    Preset(
        name="immediate",
        origin="Daycry Jobs, strategy none",
        description="Retries at once.",
        policy=Retry.fixed(0),
        aliases=("none",),
    ),
    Preset(
        name="fixed",
        origin="Daycry Jobs, strategy fixed",
        description="5 s every time, give or take 15 %.",
        policy=Retry.fixed("5s"),
    ),
    Preset(
        name="exponential",
        origin="Daycry Jobs, strategy exponential",
        description="Doubles from 5 s up to 5 minutes, give or take 15 %, above the cap too.",
        policy=Retry.exponential("5s", cap="300s", jitter=0.15, jitter_over_cap=True),
    ),
    Preset(
        name="harbor",
        origin="TaskHarbor",
        description="25 attempts at most, whatever a job asks for: doubles from 0.2 s up to 5 s, give or take 20 %, "
        "above the cap too.",
        policy=Retry.exponential("200ms", cap="5s", jitter=0.2, max_attempts=25, jitter_over_cap=True, caps_jobs=True),
    ),
    Preset(
        name="scheduler",
        origin="job scheduler, jobs delivered at least once",
        description="Doubles from 1 s up to 5 minutes, to the second.",
        policy=Retry.exponential("1s", cap="300s", jitter="none"),
    ),
    Preset(
        name="patient",
        origin="Perdure, for outages of hours",
        description="20 attempts over about a day: doubles from 30 s up to 2 hours, give or take 20 %, "
        "above the cap too.",
        policy=Retry.exponential("30s", cap="2h", jitter=0.2, max_attempts=20, jitter_over_cap=True),
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})
"""Every preset by its name."""

NAMED: Mapping[str, Preset] = MappingProxyType(
    {**PRESETS, **{alias: preset for preset in _ALL for alias in preset.aliases}}
)
"""Every preset by its name and by its aliases."""
