"""`/metrics` beside the API: the same numbers as anywhere else, and only for those who may read."""

from __future__ import annotations

from tests.web.reach import Reach


async def test_metrics_are_served_as_prometheus_reads_them(reach: Reach) -> None:
    response = await reach.ask("GET", "/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    assert "perdure_up 1.0" in response.text
    assert "# TYPE perdure_jobs_enqueued_total counter" in response.text
