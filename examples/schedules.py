"""A report every night and a pulse every ten minutes: schedules in code, tried out in virtual time.

See what they do, then run them (Ctrl-C stops the worker):

    cd examples
    python schedules.py
    perdure worker schedules:app

While it runs, `perdure schedules ls` shows how they stand, `perdure schedules next nightly` when they tick, and
`perdure schedules run nightly` does not wait for the night.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from perdure import App, current_job

app = App()
BERLIN = ZoneInfo("Europe/Berlin")


@app.task(retry="scheduler", max_retries=3)
def render(what: str) -> str:
    """Render a report; the first attempt of each one fails."""
    if current_job().attempt == 1:
        raise ConnectionError("the database is still asleep")
    return f"{what} rendered"


@app.task
def beat() -> None:
    """Say that we are alive."""


# Once each day, also on the two days on which the clocks change.
app.schedule("nightly", render.bind("report"), cron="0 30 2 * * *", tz="Europe/Berlin")
# Every ten minutes of real time; a beat that takes longer than that skips the next.
app.schedule("pulse", beat.bind(), cron="@every 10m")


def main() -> None:
    """Three days in a moment: the clock of the test is ours."""
    with app.testing() as t:
        t.advance("3d")
        for job in t.jobs(schedule="nightly"):
            assert job.tick_at is not None
            print(f"{job.tick_at.astimezone(BERLIN):%Y-%m-%d %H:%M} {job.state} at attempt {job.attempt}")
        print(f"{len(t.jobs(schedule='pulse'))} beats")


if __name__ == "__main__":
    main()
