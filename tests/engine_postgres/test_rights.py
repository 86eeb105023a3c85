"""The roles that docs/postgres.md describes can do what they are for, and `perdure doctor` says what a role lacks."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from click.testing import CliRunner, Result
from tests.conformance.every_verb import use_every_verb, wake_a_worker
from tests.conformance.scene import success
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres

from perdure.cli.main import root
from perdure.engines.opener import open_store
from perdure.engines.postgres.rights import NEEDED
from perdure.errors import EngineUnreachable
from perdure.store.reads import JobFilter
from perdure.system.clock import SystemClock, VirtualClock

ROOT = Path(__file__).parents[2]
SQL = ROOT / "src" / "perdure" / "engines" / "postgres" / "sql"


def documented() -> list[str]:
    """The two scripts of the page: an administrator's, and the owner's."""
    page = (ROOT / "docs" / "postgres.md").read_text(encoding="utf-8")
    section = page.partition("\n## Rights\n")[2].partition("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", section, re.DOTALL)


class Place:
    """A database of its own with the documented roles, under names of its own, for roles belong to a whole server."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.administrator = urlsplit(postgres.shared_server())._replace(path=f"/{database}").geturl()

    def script(self, number: int) -> str:
        return re.sub(r"\bperdure_(owner|worker|producer)\b", rf"{self.database}_\1", documented()[number])

    def url(self, role: str) -> str:
        password = {"owner": "choose-one", "worker": "choose-another", "producer": "choose-a-third"}[role]
        parts = urlsplit(self.administrator)
        return parts._replace(netloc=f"{self.database}_{role}:{password}@{parts.hostname}:{parts.port}").geturl()

    def run(self, text: str, role: str | None = None) -> None:
        url = self.administrator if role is None else self.url(role)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(text.encode())


@pytest.fixture(scope="module")
def shared_place() -> Iterator[Place]:
    made = Place(f"place_{secrets.token_hex(4)}")
    with psycopg.connect(postgres.shared_server(), autocommit=True) as operator:
        operator.execute(f"CREATE DATABASE {made.database}".encode())
    made.run(made.script(0))
    made.run(f"REVOKE ALL ON DATABASE {made.database} FROM PUBLIC")
    roles = ", ".join(f"{made.database}_{role}" for role in ("owner", "worker", "producer"))
    made.run(f"GRANT CONNECT ON DATABASE {made.database} TO {roles}")
    yield made
    with psycopg.connect(postgres.shared_server(), autocommit=True) as operator:
        operator.execute(f"DROP DATABASE {made.database} WITH (FORCE)".encode())
        operator.execute(f"DROP ROLE {roles}".encode())


@pytest.fixture
def place(shared_place: Place) -> Place:
    """Empty, and with the rights as documented, whatever the test before took away."""
    shared_place.run("DROP SCHEMA perdure CASCADE")
    shared_place.run(shared_place.script(0).splitlines()[-1])
    open_store(shared_place.url("owner"), clock=SystemClock(), auto_migrate=True).close()
    shared_place.run(shared_place.script(1), "owner")
    return shared_place


def perdure(url: str, *command: str) -> Result:
    return CliRunner().invoke(root, command, env={"PERDURE_URL": url})


def test_the_worker_can_use_every_verb(place: Place) -> None:
    clock = VirtualClock()
    with closing(open_store(place.url("worker"), clock=clock)) as store:
        use_every_verb(store, clock)
        assert store.capabilities.problems == ()


async def test_a_worker_is_woken_by_a_producer(place: Place) -> None:
    await wake_a_worker(place.url("worker"), place.url("producer"))


def test_the_producer_makes_jobs_and_reads_none(place: Place) -> None:
    with closing(open_store(place.url("producer"), clock=SystemClock())) as store:
        scene = RealScene(store)
        single = scene.enqueue(args=b'{"args":["private"]}')
        assert len(store.enqueue([scene.new_job() for _ in range(3)]).wait()) == 3
        assert len({scene.enqueue(unique="7") for _ in range(2)}) == 1
        with psycopg.connect(place.url("producer")) as connection:
            within = store.enqueue_within(connection, [scene.new_job(), scene.new_job(unique="8")])
        for verb in (store.get([single]), store.list(JobFilter(), limit=1), store.cancel([single], "no")):
            with pytest.raises(EngineUnreachable, match=r"may not do that.*permission denied.*Rights"):
                verb.wait()
    with psycopg.connect(place.url("producer")) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT args FROM perdure.jobs")
    with closing(open_store(place.url("worker"), clock=SystemClock())) as store:
        jobs = RealScene(store).fetch(RealScene(store).worker())
        assert {single, *within} <= {job.id for job in jobs}
        assert all(RealScene(store).end(job, success(job)) for job in jobs)


def test_only_the_owner_migrates(place: Place) -> None:
    place.run("DELETE FROM perdure.schema WHERE version = 7", "owner")
    with pytest.raises(EngineUnreachable, match=r"may not migrate the schema perdure .*owns the schema"):
        open_store(place.url("worker"), clock=SystemClock(), auto_migrate=True)
    open_store(place.url("owner"), clock=SystemClock(), auto_migrate=True).close()


def test_a_role_that_may_not_create_a_schema_is_told_who_may(place: Place) -> None:
    ran = perdure(f"{place.url('worker')}?schema=other", "db", "migrate")
    assert ran.exit_code == 5
    assert "may not migrate the schema other" in ran.output
    assert "Traceback" not in ran.output


def test_doctor_and_other_commands_work_with_the_rights_of_a_worker(place: Place) -> None:
    for command in (["doctor"], ["stats"], ["health"], ["queues", "ls"], ["workers", "ls"], ["db", "status"]):
        ran = perdure(place.url("worker"), *command)
        assert ran.exit_code == 0, (command, ran.output)


@pytest.mark.parametrize(("table", "right"), [("attempts", "DELETE"), ("jobs", "SELECT"), ("queue_settings", "UPDATE")])
def test_doctor_names_a_missing_right_and_the_statement_that_grants_it(place: Place, table: str, right: str) -> None:
    role = f"{place.database}_worker"
    place.run(f"REVOKE {right} ON perdure.{table} FROM {role}", "owner")
    ran = perdure(place.url("worker"), "doctor", "--json")
    assert ran.exit_code == 1
    (problem,) = [one["text"] for one in json.loads(ran.stdout)["findings"] if one["level"] == "problem"]
    assert f"The role {role} lacks rights" in problem
    grant = f'GRANT {right} ON "perdure".{table} TO "{role}";'
    assert problem.endswith(f"run: {grant}")
    place.run(grant, "owner")
    assert perdure(place.url("worker"), "doctor").exit_code == 0


def test_a_role_without_the_schema_is_given_all_statements(place: Place) -> None:
    role = f"{place.database}_worker"
    place.run(
        f"REVOKE ALL ON SCHEMA perdure FROM {role}; REVOKE ALL ON ALL TABLES IN SCHEMA perdure FROM {role}", "owner"
    )
    ran = perdure(place.url("worker"), "doctor")
    assert ran.exit_code == 5
    assert "may not read the schema perdure" in ran.output
    grants = re.findall(r"GRANT [^;]+;", ran.output)
    assert len(grants) == len(NEEDED) + 1
    place.run(" ".join(grants), "owner")
    assert perdure(place.url("worker"), "doctor").exit_code == 0


def test_the_page_grants_a_worker_what_the_statements_need() -> None:
    granted: dict[str, set[str]] = {}
    for rights, tables, roles in re.findall(
        r"GRANT ([A-Z, ]+?)\s+ON (?!SCHEMA)([^;]+?)\s+TO ([^;]+);", documented()[1]
    ):
        for table in re.findall(r"perdure\.(\w+)", tables) if "perdure_worker" in roles else []:
            granted.setdefault(table, set()).update(rights.split(", "))
    assert granted == {table: set(rights) for table, rights in NEEDED.items()}


def test_no_right_is_granted_that_no_statement_needs() -> None:
    used: dict[str, set[str]] = {table: {"SELECT"} for table in NEEDED}
    for path in SQL.glob("*.sql"):
        text = path.read_text(encoding="utf-8")
        for right, table in re.findall(r"(INSERT INTO|UPDATE|DELETE FROM) perdure\.(\w+)", text):
            used[table].add(right.split()[0])
            if "DO UPDATE" in text and right == "INSERT INTO":
                used[table].add("UPDATE")
    used["schema"].discard("INSERT")  # the owner's, who migrates
    assert used == {table: set(rights) for table, rights in NEEDED.items()}
