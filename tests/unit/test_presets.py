"""The presets, each held to its documented delays, limit and jitter."""

from __future__ import annotations

from random import Random

import pytest

from perdure.admin.forecast import forecast
from perdure.errors import BadPolicy
from perdure.model.policy.presets import DEFAULT_PRESET, PRESETS, find_preset
from perdure.model.policy.retry import Retry

GOLDEN = {
    "standard": (4, "full", [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]),
    "standard-table": (4, "full", [0.5, 1, 2, 4, 8, 30, 30, 30, 30, 30]),
    "conservative": (6, "full", [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]),
    "aggressive": (3, "full", [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5]),
    "one-shot": (1, "none", [0] * 10),
    "quadrupling": (4, "none", [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144]),
    "immediate": (4, "none", [0] * 10),
    "fixed": (4, 0.15, [5] * 10),
    "exponential": (4, 0.15, [5, 10, 20, 40, 80, 160, 300, 300, 300, 300]),
    "harbor": (25, 0.2, [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5, 5]),
    "scheduler": (4, "none", [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]),
    "patient": (20, 0.2, [30, 60, 120, 240, 480, 960, 1920, 3840, 7200, 7200]),
}


def test_every_preset_is_held_to_its_golden_vector() -> None:
    assert PRESETS.keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_a_preset_keeps_its_limit_jitter_and_delays(name: str) -> None:
    policy = Retry.preset(name)
    limit, jitter, waits = GOLDEN[name]
    assert policy.max_attempts == limit
    assert policy.jitter == jitter
    assert [policy.ceiling(n).total_seconds() for n in range(1, 11)] == waits


@pytest.mark.parametrize(("name", "highest"), [("exponential", 345), ("harbor", 6), ("patient", 8640)])
def test_presets_documented_so_jitter_over_their_cap(name: str, highest: float) -> None:
    policy = Retry.preset(name)
    random = Random(1)
    drawn = [policy.delay(20, random).total_seconds() for _ in range(300)]
    assert policy.bounds(20)[1].total_seconds() == highest
    assert policy.cap is not None
    assert max(drawn) > policy.cap.total_seconds()


@pytest.mark.parametrize("name", ["standard", "standard-table", "conservative", "aggressive"])
def test_fully_jittered_presets_stay_below_their_ceiling(name: str) -> None:
    policy = Retry.preset(name)
    for n in range(1, 12):
        least, greatest = policy.bounds(n)
        assert least.total_seconds() == 0
        assert greatest == policy.ceiling(n)


def test_a_preset_is_a_plain_policy() -> None:
    assert Retry.preset("standard") == Retry.exponential("500ms", cap="30s")
    assert Retry.preset("one-shot") == Retry.never_retry()
    assert Retry.preset("immediate") == Retry.fixed(0)
    assert Retry.preset("fixed") == Retry.fixed("5s")


def test_harbor_alone_caps_what_jobs_ask_for() -> None:
    assert [name for name, preset in PRESETS.items() if preset.policy.caps_jobs] == ["harbor"]


def test_patient_keeps_trying_for_about_a_day() -> None:
    total = forecast(Retry.preset("patient")).total
    hours = [span.total_seconds() / 3600 for span in (total.least, total.expected, total.greatest)]
    assert hours == pytest.approx([19.3, 24.125, 28.95])


def test_an_alias_means_its_preset_and_is_no_preset_of_its_own() -> None:
    assert find_preset("none") is find_preset("immediate")
    assert Retry.preset("none") == Retry.parse("none") == Retry.coerce("none") == Retry.fixed(0)
    assert "none" not in PRESETS
    assert {alias: preset.name for preset in PRESETS.values() for alias in preset.aliases} == {"none": "immediate"}


def test_standard_is_the_default() -> None:
    assert DEFAULT_PRESET == "standard"


def test_no_preset_counts_recoveries_as_free_or_sets_a_time() -> None:
    for preset in PRESETS.values():
        assert preset.policy.max_recoveries == 0
        assert preset.policy.within is None


@pytest.mark.parametrize("name", GOLDEN)
def test_every_preset_says_what_it_is_and_can_be_stored(name: str) -> None:
    preset = find_preset(name)
    assert preset.name == name
    assert preset.origin
    assert preset.description.endswith(".")
    assert Retry.parse(preset.policy.text) == Retry.parse(name) == preset.policy


@pytest.mark.parametrize("wrong", ["standart", "Standard", "STANDARD", "standard_table", "habor", "nonee", "patiant"])
def test_a_misspelt_preset_is_answered_with_the_nearest(wrong: str) -> None:
    with pytest.raises(BadPolicy, match=r"Did you mean '(standard|standard-table|harbor|none|patient)'"):
        Retry.preset(wrong)


@pytest.mark.parametrize("wrong", ["", "zzz", "x" * 10_000, 5, None])
def test_an_unknown_preset_is_answered_with_the_list(wrong: object) -> None:
    with pytest.raises(BadPolicy, match="The presets are standard, ") as caught:
        Retry.preset(wrong)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 400


def test_the_presets_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PRESETS["mine"] = PRESETS["fixed"]  # type: ignore[index]
