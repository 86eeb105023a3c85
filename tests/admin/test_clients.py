"""Both clients have the same words, and each word does what it says."""

from __future__ import annotations

import inspect
from datetime import timedelta

import pytest
from tests.admin.scene import Scene

from perdure.client import AsyncClient
from perdure.client_sync import Client
from perdure.errors import BadOption, JobNotFound, Refused, WrongState

NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"


def public(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in vars(kind).items()
        if callable(member) and (not name.startswith("_") or name == "__init__")
    }


@pytest.fixture
def client(scene: Scene) -> Client:
    return Client(scene.store)


def test_both_clients_have_the_same_methods_and_parameters() -> None:
    assert public(Client) == public(AsyncClient)
    assert len(public(Client)) == 28


def test_every_method_of_the_asynchronous_client_is_awaited() -> None:
    methods = [getattr(AsyncClient, name) for name in public(AsyncClient) if name != "__init__"]
    assert all(inspect.iscoroutinefunction(method) for method in methods)


async def test_the_asynchronous_client_gives_the_same_answers(scene: Scene) -> None:
    dead = scene.dead()
    blocking = Client(scene.store)
    async with AsyncClient(scene.store) as client:
        assert await client.get(dead) == blocking.get(dead)
        assert await client.history(dead) == blocking.history(dead)
        assert await client.list(state="dead") == blocking.list(state="dead")
        assert await client.stats() == blocking.stats()
        assert (await client.replay(dead)).count == 1
        with pytest.raises(JobNotFound):
            await client.get(NOBODY)


def test_leaving_the_context_keeps_the_store_open(scene: Scene) -> None:
    with Client(scene.store) as client:
        client.stats()
    assert scene.store.now().wait() == scene.clock.now()


def test_get_gives_the_job(scene: Scene, client: Client) -> None:
    job_id = scene.enqueue("mail")
    assert client.get(job_id).task == "mail"
    assert client.get(f" {job_id.upper()} ").id == job_id


@pytest.mark.parametrize("job_id", [NOBODY, "nonsense", ""])
def test_an_unknown_id_is_said_to_be_unknown(client: Client, job_id: str) -> None:
    with pytest.raises(JobNotFound):
        client.get(job_id)
    with pytest.raises(JobNotFound):
        client.history(job_id)
    with pytest.raises(JobNotFound):
        client.cancel(job_id)
    with pytest.raises(JobNotFound):
        client.retry(job_id)
    with pytest.raises(JobNotFound):
        client.replay(job_id)
    with pytest.raises(JobNotFound):
        client.discard(job_id)


def test_history_has_one_record_per_attempt(scene: Scene, client: Client) -> None:
    job_id = scene.failing()
    [attempt] = client.history(job_id)
    assert (attempt.attempt, attempt.outcome, attempt.delay) == (1, "failed", timedelta(minutes=5))


def test_list_gives_pages_that_meet_without_gap_or_overlap(scene: Scene, client: Client) -> None:
    ids = [scene.enqueue() for _ in range(5)]
    first = client.list(limit=2)
    second = client.list(limit=2, cursor=first.next_cursor)
    third = client.list(limit=2, cursor=second.next_cursor)
    assert [job.id for job in (*first, *second, *third)] == list(reversed(ids))
    assert third.next_cursor is None


def test_a_full_last_page_has_no_next_cursor(scene: Scene, client: Client) -> None:
    scene.enqueue()
    scene.enqueue()
    assert client.list(limit=2).next_cursor is None


def test_filters_narrow_lists_and_counts(scene: Scene, client: Client) -> None:
    scene.dead("mail", error="TimeoutError")
    wanted = scene.dead("mail", error="ValueError", message="bad address")
    scene.dead("other", error="ValueError")
    page = client.dead_letters(task="mail", error="ADDRESS")
    assert [job.id for job in page] == [wanted]
    assert client.count(state="dead", task="mail") == 2
    assert client.count(reason="exhausted") == 3
    assert client.count(queue="elsewhere") == 0


def test_moments_may_be_given_as_so_long_ago(scene: Scene, client: Client) -> None:
    old = scene.dead()
    scene.clock.advance(timedelta(hours=2))
    new = scene.dead()
    assert [job.id for job in client.list(before="1h")] == [old]
    assert [job.id for job in client.list(after=timedelta(hours=1))] == [new]
    assert [job.id for job in client.list(after=scene.clock.now().isoformat(), before="0s")] == []


def test_a_filter_that_does_not_exist_is_refused_with_a_suggestion(client: Client) -> None:
    with pytest.raises(BadOption, match="Did you mean 'state'"):
        client.count(stat="dead")  # type: ignore[call-arg]


@pytest.mark.parametrize("filters", [{"state": "asleep"}, {"before": "soonish"}, {"task": 3}])
def test_a_filter_with_an_impossible_value_is_refused(client: Client, filters: dict[str, str]) -> None:
    with pytest.raises(BadOption):
        client.count(**filters)  # type: ignore[arg-type]


def test_groups_tell_errors_apart(scene: Scene, client: Client) -> None:
    for _ in range(2):
        scene.dead(error="TimeoutError", message="after 3 s")
    sample = scene.dead(error="ValueError")
    largest, smaller = client.groups()
    assert (largest.count, smaller.count, smaller.sample_id) == (2, 1, sample)
    assert client.count(state="dead", group=largest.fingerprint) == 2


def test_cancel_ends_a_waiting_job_and_asks_for_a_running_one(scene: Scene, client: Client) -> None:
    scene.enqueue("slow")
    [running] = scene.run()
    waiting = scene.enqueue(delay=timedelta(hours=1))
    assert client.cancel(waiting) == "cancelled"
    assert client.cancel(waiting) == "already cancelled"
    assert client.cancel(running.id) == "asked"
    assert scene.state(waiting) == "cancelled"


def test_cancel_says_which_state_it_met_and_which_it_takes(scene: Scene, client: Client) -> None:
    done = scene.succeeded()
    with pytest.raises(WrongState, match=r"is succeeded.*waiting, ready and running") as caught:
        client.cancel(done)
    assert caught.value.hint is not None


def test_retry_makes_waiting_dead_and_cancelled_jobs_ready(scene: Scene, client: Client) -> None:
    waiting, dead, cancelled = scene.failing(), scene.dead(), scene.enqueue()
    client.cancel(cancelled)
    for job_id in (waiting, dead, cancelled):
        client.retry(job_id)
        assert scene.state(job_id) == "ready"


def test_retry_refuses_other_states(scene: Scene, client: Client) -> None:
    with pytest.raises(WrongState, match="is succeeded"):
        client.retry(scene.succeeded())


def test_retry_refuses_while_the_unique_key_is_busy(scene: Scene, client: Client) -> None:
    dead = scene.dead(unique="order-7")
    scene.enqueue(unique="order-7")
    with pytest.raises(Refused, match="unique key"):
        client.retry(dead)


def test_pause_and_resume_say_whether_they_changed_anything(scene: Scene, client: Client) -> None:
    scene.enqueue(queue="mail")
    assert client.pause("mail", "maintenance")
    assert not client.pause("mail", "maintenance")
    [queue] = client.queues()
    assert (queue.is_paused, queue.pause_reason) == (True, "maintenance")
    assert client.resume("mail")
    assert not client.resume("mail")


def test_stats_add_up_over_queues(scene: Scene, client: Client) -> None:
    scene.dead()
    scene.enqueue(queue="mail")
    scene.enqueue(queue="other", delay=timedelta(hours=1))
    scene.clock.advance(timedelta(seconds=10))
    stats = client.stats()
    assert (stats.ready, stats.waiting, stats.dead, stats.workers) == (1, 1, 1, 1)
    assert stats.oldest_ready_age == timedelta(seconds=10)
    assert [queue.name for queue in stats.queues] == ["default", "mail", "other"]


def test_a_worker_whose_lease_ran_out_does_not_count_as_alive(scene: Scene, client: Client) -> None:
    scene.register()
    assert client.stats().workers == 1
    scene.clock.advance(timedelta(minutes=1))
    assert client.stats().workers == 0
    assert len(client.workers()) == 1


def test_change_gives_the_job_as_it_then_is(scene: Scene, client: Client) -> None:
    job_id = scene.failing()
    job = client.change(job_id, delay="1h", priority=5, max_retries=9)
    assert job == client.get(job_id)
    assert (job.state, job.run_at) == ("waiting", scene.clock.now() + timedelta(hours=1))
    assert (job.priority, job.max_attempts, job.failures) == (5, 10, 1)
    assert client.change(job_id, unset=["max_attempts"]).max_attempts is None
    assert client.change(job_id, run_at=scene.clock.now(), queue="other").state == "ready"
    assert client.change(job_id) == client.get(job_id)


async def test_both_clients_change_alike(scene: Scene, client: Client) -> None:
    async with AsyncClient(scene.store) as other:
        assert (await other.change(scene.enqueue(), priority=5)).priority == 5
        with pytest.raises(WrongState, match="Change takes waiting and ready jobs"):
            await other.change(scene.dead(), priority=5)
    with pytest.raises(WrongState, match="succeeded"):
        client.change(scene.succeeded(), delay=0)


def test_change_refuses_what_it_cannot_do(scene: Scene, client: Client) -> None:
    with pytest.raises(JobNotFound):
        client.change(NOBODY, priority=5)
    with pytest.raises(JobNotFound):
        client.change(NOBODY)
    job_id = scene.enqueue()
    with pytest.raises(BadOption):
        client.change(job_id, priority=101)
    with pytest.raises(TypeError):
        client.change(job_id, colour="red")
