"""Several processes on one store: every job runs once, and no fence is accepted twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from tests.conformance.scene import Scene

from perdure.store.reads import JobFilter

WORK = """
import json, sys
from datetime import timedelta
from perdure.system.clock import SystemClock
from perdure.engines.opener import open_store
from perdure.model.job import NewJob, WorkerId
from perdure.model.outcome import Outcome
from perdure.store.jobs import Ended, Want

url, name = sys.argv[1:]
clock = SystemClock()
store = open_store(url, clock=clock)
worker = WorkerId(name)
store.register(
    worker, host="here", pid=1, queues=("mail",), concurrency=1, version="1", lease=timedelta(minutes=5)
).wait()
for number in range(100):
    job_id = f"00000000-0000-7000-8000-{int(name[-1]):04d}{number:08d}"
    store.enqueue([NewJob(id=job_id, task="send", queue="mail", args=b"{}")]).wait()
seen = []
while jobs := store.fetch(worker, [Want(queue="mail", count=8, retry_share=500_000)], 8).wait().jobs:
    ended = []
    for job in jobs:
        fails = job.attempt == 1 and job.id.endswith("7")
        outcome = Outcome(
            verb="fail" if fails else "succeed",
            state="ready" if fails else "succeeded",
            attempt="failed" if fails else "succeeded",
            reason="failed" if fails else None,
            failures=int(fails),
            recoveries=0,
            lane="retry",
            delay=timedelta(0) if fails else None,
        )
        ended.append(
            Ended(
                job_id=job.id,
                attempt=job.attempt,
                worker=worker,
                task=job.task,
                outcome=outcome,
                started_at=clock.now(),
                ended_at=clock.now(),
            )
        )
    accepted = store.commit(ended).wait()
    assert all(accepted)
    seen += [[job.id, job.attempt] for job in jobs]
store.close()
print(json.dumps(seen))
"""


def test_every_attempt_is_handed_out_and_accepted_once(scene: Scene, url: str) -> None:
    if not scene.store.capabilities.is_shared:
        pytest.skip("the store is private to whoever opened it")
    workers = [
        subprocess.Popen([sys.executable, "-c", WORK, url, f"worker-{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    seen = [tuple(fence) for worker in workers for fence in json.loads(worker.communicate()[0])]
    assert all(worker.returncode == 0 for worker in workers)
    assert set(Counter(seen).values()) == {1}
    assert scene.store.count(JobFilter(state="succeeded")).wait() == 300
    assert len(seen) == 330
