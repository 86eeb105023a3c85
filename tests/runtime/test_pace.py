"""How much a worker may hold in advance: about the horizon's worth of work at the pace it really has."""

from __future__ import annotations

from perdure.runtime.pace import Pace


def test_slow_jobs_that_happen_to_end_together_are_not_taken_for_a_fast_pace() -> None:
    pace = Pace(horizon=0.2, most=1000, slots=8)
    pace.measure(100.0, 0)
    most = 0
    # Eight slots, jobs of 400 ms, and twice within each 400 ms four of them end within a millisecond.
    for turn in range(1, 50):
        for position in range(1, 5):
            pace.measure(100.0 + 0.2 * turn + 0.00025 * position, 4 * (turn - 1) + position)
            most = max(most, pace.advance)
    assert most <= 5, "20 jobs a second make 4 in 200 ms"


def test_fast_jobs_are_held_in_advance_within_a_few_milliseconds() -> None:
    pace = Pace(horizon=0.2, most=1000, slots=8)
    pace.measure(100.0, 0)
    # Ten thousand a second, read every millisecond.
    for millisecond in range(1, 11):
        pace.measure(100.0 + millisecond / 1000, 10 * millisecond)
    assert pace.advance == 1000


def test_a_pace_that_is_over_is_forgotten() -> None:
    pace = Pace(horizon=0.2, most=1000, slots=8)
    pace.measure(100.0, 0)
    pace.measure(100.2, 200)
    assert pace.advance >= 40
    pace.measure(101.0, 200)
    assert pace.advance == 0
