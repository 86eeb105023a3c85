"""The dead come back exactly as announced: counted, chunked, paced, canaries first."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from tests.admin.scene import Scene

from perdure.admin import operate, replay
from perdure.admin.reply_generator import Stepped
from perdure.admin.selection import select_dead
from perdure.client_sync import Client
from perdure.errors import BadOption, WrongState


@pytest.fixture
def client(scene: Scene) -> Client:
    return Client(scene.store)


def test_a_dry_run_counts_exactly_and_changes_nothing(scene: Scene, client: Client) -> None:
    ids = [scene.dead("mail") for _ in range(3)]
    scene.dead("other")
    result = client.replay(task="mail", dry_run=True)
    assert (result.count, result.matching, result.is_dry_run) == (3, 3, True)
    assert {scene.state(job_id) for job_id in ids} == {"dead"}


def test_replay_by_filter_puts_back_what_matches_only(scene: Scene, client: Client) -> None:
    wanted, other = scene.dead("mail"), scene.dead("other")
    assert client.replay(task="mail").count == 1
    assert (scene.state(wanted), scene.state(other)) == ("ready", "dead")
    assert client.get(wanted).failures == 0


def test_replay_by_ids_puts_back_those(scene: Scene, client: Client) -> None:
    first, second, third = (scene.dead() for _ in range(3))
    assert client.replay(first, third).count == 2
    assert [scene.state(job_id) for job_id in (first, second, third)] == ["ready", "dead", "ready"]


def test_replay_of_all_dead_must_be_said_in_so_many_words(scene: Scene, client: Client) -> None:
    job_id = scene.dead()
    with pytest.raises(BadOption, match="which dead jobs"):
        client.replay()
    with pytest.raises(BadOption, match="which dead jobs"):
        client.discard()
    assert scene.state(job_id) == "dead"
    assert client.replay(state="dead").count == 1


def test_ids_and_filters_together_are_refused(scene: Scene, client: Client) -> None:
    with pytest.raises(BadOption, match="together"):
        client.replay(scene.dead(), task="mail")


def test_only_dead_jobs_can_be_meant(scene: Scene, client: Client) -> None:
    with pytest.raises(WrongState, match="is ready, not dead"):
        client.replay(scene.enqueue())
    with pytest.raises(BadOption, match="only dead jobs"):
        client.replay(state="ready")
    with pytest.raises(BadOption, match="only dead jobs"):
        client.dead_letters(state="ready")


def test_canaries_are_the_oldest_ones(scene: Scene, client: Client) -> None:
    ids = [scene.dead() for _ in range(4)]
    result = client.replay(state="dead", canary=2)
    assert (result.count, result.matching, result.left) == (2, 4, 2)
    assert [scene.state(job_id) for job_id in ids] == ["ready", "ready", "dead", "dead"]


def test_a_dry_run_with_canaries_counts_the_canaries(scene: Scene, client: Client) -> None:
    for _ in range(3):
        scene.dead()
    assert client.replay(state="dead", canary=2, dry_run=True).count == 2
    with pytest.raises(BadOption, match="canary"):
        client.replay(state="dead", canary=0)


def test_a_rate_spaces_the_jobs(scene: Scene, client: Client) -> None:
    ids = [scene.dead() for _ in range(3)]
    client.replay(state="dead", rate="2/s")
    times = [client.get(job_id).run_at for job_id in ids]
    assert [later - sooner for sooner, later in pairwise(times)] == [timedelta(milliseconds=500)] * 2


def test_a_rate_spaces_the_jobs_beyond_one_chunk(scene: Scene, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "CHUNK", 2)
    ids = [scene.dead() for _ in range(5)]
    client.replay(state="dead", rate=1)
    assert len({client.get(job_id).run_at for job_id in ids}) == 5


@pytest.mark.parametrize(
    ("rate", "seconds"), [("50/s", 0.02), ("120/m", 0.5), ("10/h", 360), ("4/ min", 15), (5, 0.2), ("0.5", 2)]
)
def test_rates_are_read(rate: str | float, seconds: float) -> None:
    assert replay.read_rate(rate) == timedelta(seconds=seconds)


@pytest.mark.parametrize("rate", ["fast", "0/s", "-1/s", "1/y", "", True, "1e3"])
def test_what_is_no_rate_is_refused(rate: str) -> None:
    with pytest.raises(BadOption, match="rate"):
        replay.read_rate(rate)


def test_chunks_together_put_back_all_and_tell_of_each(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "CHUNK", 2)
    ids = [scene.dead() for _ in range(5)]
    told: list[int] = []
    selection = Stepped(select_dead(scene.store, (), {"state": "dead"})).wait()
    result = replay.replay_selected(scene.store, selection, tell=told.append).wait()
    assert (result.count, told) == (5, [2, 2, 1])
    assert {scene.state(job_id) for job_id in ids} == {"ready"}


def test_jobs_that_die_after_the_selection_do_not_join_it(scene: Scene) -> None:
    older = scene.enqueue(queue="slow")
    first = scene.dead()
    selection = Stepped(select_dead(scene.store, (), {"state": "dead"})).wait()
    scene.clock.advance(timedelta(seconds=1))
    scene.die(older, "slow")
    # The one that dies later was made earlier, so it would come first if it were let in.
    assert replay.replay_selected(scene.store, selection).wait().count == 1
    assert (scene.state(first), scene.state(older)) == ("ready", "dead")


def test_a_job_whose_unique_key_is_busy_stays_dead_and_is_counted_as_left(scene: Scene, client: Client) -> None:
    busy, free = scene.dead(unique="a"), scene.dead(unique="b")
    scene.enqueue(unique="a")
    result = client.replay(state="dead")
    assert (result.count, result.left) == (1, 1)
    assert (scene.state(busy), scene.state(free)) == ("dead", "ready")


def test_discard_dismisses_what_matches_in_chunks(
    scene: Scene, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operate, "CHUNK", 2)
    ids = [scene.dead("mail") for _ in range(3)]
    other = scene.dead("other")
    assert client.discard(task="mail", dry_run=True) == 3
    assert {scene.state(job_id) for job_id in ids} == {"dead"}
    assert client.discard(task="mail") == 3
    assert {client.get(job_id).reason for job_id in ids} == {"discarded"}
    assert scene.state(other) == "dead"


def test_live_jobs_are_selected_and_cancelled_in_chunks(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operate, "CHUNK", 2)
    ids = [scene.enqueue("mail") for _ in range(3)] + [scene.enqueue("mail", delay=timedelta(hours=1))]
    scene.enqueue("other")
    found = operate.select_live(scene.store, {"task": "mail"}).wait()
    assert sorted(found) == sorted(ids)
    answers = operate.cancel_many(scene.store, found).wait()
    assert [answer for _, answer in answers] == ["cancelled"] * 4
