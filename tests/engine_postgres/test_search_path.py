"""Whatever functions, operators, types and tables stand on a role's search path, the store uses PostgreSQL's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest
from tests.conformance.every_verb import use_every_verb, wake_a_worker
from tests.conformance.scene import Scene, ended, success
from tests.engine_postgres.traps import NAMES, TABLES, HostileDatabase, functions, hostile_database, operators
from tests.servers import postgres
from tests.servers.pooler import Pooler

from perdure import App
from perdure.engines.opener import open_store
from perdure.engines.postgres.sql import PACKAGE, in_schema, statement
from perdure.engines.statements import load
from perdure.model.job import WorkerId
from perdure.store import Store
from perdure.system.clock import SystemClock, VirtualClock

HOSTILE_PATH = "pg_temp, evil, public, pg_catalog"


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileDatabase]:
    with hostile_database() as made:
        yield made


@pytest.fixture
def url(hostile: HostileDatabase, schema: str) -> str:
    """A store of the test's own in the hostile database, migrated by the role whose search path is hostile."""
    return postgres.with_options(hostile.dsn, schema=schema)


def open_it(url: str, clock: SystemClock | VirtualClock | None = None) -> Store:
    return open_store(url, clock=clock or SystemClock(), auto_migrate=True)


def test_the_traps_catch_a_statement_that_is_not_qualified(hostile: HostileDatabase) -> None:
    """Else the tests below could not fail."""
    before = hostile.sprung()
    with psycopg.connect(hostile.dsn, autocommit=True) as connection:
        for text in (
            "SELECT unnest(ARRAY[pg_catalog.gen_random_uuid()])",
            "SELECT 1 WHERE 'a'::pg_catalog.text = 'b'::pg_catalog.varchar",
            "SELECT 1 WHERE 1 = 1",
            "SELECT statement_timestamp()",
        ):
            with pytest.raises(psycopg.Error, match="a trap was sprung"):
                connection.execute(text.encode())
        with pytest.raises(psycopg.Error, match=r"trap|cast|record"):
            connection.execute("SELECT 1::text")
    assert hostile.sprung() == before + 4


def test_public_alone_is_enough_of_a_trap_for_a_closer_signature(hostile: HostileDatabase) -> None:
    """PostgreSQL's default path, on which pg_catalog comes first."""
    with psycopg.connect(hostile.operator, autocommit=True) as connection:
        connection.execute("SET search_path = public")
        with pytest.raises(psycopg.Error, match="a trap was sprung"):
            connection.execute("SELECT unnest(ARRAY[gen_random_uuid()])")


@pytest.mark.parametrize("path", ["evil, public, pg_catalog", "public", '"$user", public', "pg_catalog, evil"])
def test_every_verb_uses_the_servers_own_functions(hostile: HostileDatabase, url: str, path: str) -> None:
    before = hostile.sprung()
    store = open_it(
        postgres.with_options(url, options=f"-csearch_path={path.replace(' ', '')}"), clock := VirtualClock()
    )
    with closing(store):
        use_every_verb(store, clock)
    assert hostile.sprung() == before


def test_every_verb_does_so_behind_a_pooler(hostile: HostileDatabase, url: str) -> None:
    before = hostile.sprung()
    parts = urlsplit(hostile.dsn)
    assert parts.hostname is not None
    with closing(Pooler(parts.hostname, parts.port or 5432, parts.username or "", hostile.name)) as pooler:
        through = urlsplit(postgres.with_options(url, pooler="true"))
        _leave_temporary_traps(pooler, hostile)
        store = open_it(through._replace(netloc=f"x@127.0.0.1:{pooler.port}").geturl(), clock := VirtualClock())
        with closing(store):
            use_every_verb(store, clock)
    assert hostile.sprung() == before


def _leave_temporary_traps(pooler: Pooler, hostile: HostileDatabase) -> None:
    """What another client of the pooler leaves behind in each session: temporary tables, which are types as well."""
    dsn = urlsplit(hostile.dsn)._replace(netloc=f"x@127.0.0.1:{pooler.port}").geturl()
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        for name in ("text", "uuid", "json", *TABLES):
            for _ in range(3):
                connection.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {name} (trap integer)".encode())


async def test_a_worker_that_stands_by_and_keeps_plans_does_so(hostile: HostileDatabase, url: str) -> None:
    before = hostile.sprung()
    open_it(url).close()
    await wake_a_worker(url)
    assert hostile.sprung() == before


def test_a_callers_connection_of_psycopg_is_safe_and_keeps_its_search_path(hostile: HostileDatabase, url: str) -> None:
    before = hostile.sprung()
    with closing(open_it(url)) as store, psycopg.connect(hostile.dsn) as connection:
        scene = Scene(store, SystemClock())  # type: ignore[arg-type] - only its ids are asked for
        connection.execute(b"CREATE TEMPORARY TABLE uuid (trap integer)")
        connection.execute(f"SET search_path = {HOSTILE_PATH}".encode())
        single, many = [scene.new_job()], [scene.new_job(unique="7"), scene.new_job(), scene.new_job()]
        assert store.enqueue_within(connection, single) == [single[0].id]
        assert len(store.enqueue_within(connection, many)) == 3
        assert store.enqueue_within(connection, [scene.new_job(unique="7")]) == [many[0].id]
        assert connection.execute(b"SHOW search_path").fetchall() == [(HOSTILE_PATH,)]
        connection.commit()
        (job, *_) = scene.fetch(scene.worker())
        assert store.complete_within(connection, ended(job, success(job)))
        connection.commit()
        assert scene.get(job.id).state == "succeeded"
    assert hostile.sprung() == before


async def test_a_callers_connection_of_asyncpg_is_safe_and_keeps_its_search_path(
    hostile: HostileDatabase, url: str
) -> None:
    before = hostile.sprung()
    store = open_it(url)
    scene = Scene(store, SystemClock())  # type: ignore[arg-type] - only its ids are asked for
    connection = await asyncpg.connect(hostile.dsn)
    async with connection.transaction():
        await connection.execute("CREATE TEMPORARY TABLE uuid (trap integer)")
        await connection.execute(f"SET LOCAL search_path = {HOSTILE_PATH}")
        many = [scene.new_job(unique="7"), scene.new_job()]
        assert await store.enqueue_within_async(connection, [scene.new_job()])
        assert len(await store.enqueue_within_async(connection, many)) == 2
        assert await store.enqueue_within_async(connection, [scene.new_job(unique="7")]) == [many[0].id]
        assert await connection.fetchval("SHOW search_path") == HOSTILE_PATH
    worker = WorkerId("worker-1")
    scene.worker(worker)
    (job, *_) = scene.fetch(worker)
    async with connection.transaction():
        await connection.execute(f"SET LOCAL search_path = {HOSTILE_PATH}")
        assert await store.complete_within_async(connection, ended(job, success(job)))
    await connection.close()
    assert scene.get(job.id).state == "succeeded"
    store.close()
    assert hostile.sprung() == before


@pytest.mark.parametrize("way", ["migrate", "script"])
def test_tables_depend_on_nothing_outside_their_schema(
    hostile: HostileDatabase, url: str, schema: str, way: str
) -> None:
    """Checks, defaults, columns and indexes: what a migration under a hostile path could have been given."""
    if way == "migrate":
        open_it(url).close()
    else:
        with psycopg.connect(hostile.dsn, autocommit=True) as connection:
            connection.execute(App(url).schema_sql().encode())
    with psycopg.connect(hostile.operator) as connection:
        ((tables,),) = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'", [schema]
        ).fetchall()
        strangers = connection.execute(_STRANGERS, [schema]).fetchall()
    assert tables == len(TABLES)
    assert strangers == []


_STRANGERS = """
WITH own AS (
    SELECT 'pg_class'::regclass AS kind, oid FROM pg_class WHERE relnamespace = %s::regnamespace
    UNION ALL
    SELECT 'pg_constraint'::regclass, con.oid FROM pg_constraint con JOIN pg_class c ON c.oid = con.conrelid
    UNION ALL
    SELECT 'pg_attrdef'::regclass, def.oid FROM pg_attrdef def JOIN pg_class c ON c.oid = def.adrelid
),
strange AS (
    SELECT 'pg_proc'::regclass AS kind, oid, pronamespace AS place FROM pg_proc
    UNION ALL SELECT 'pg_operator'::regclass, oid, oprnamespace FROM pg_operator
    UNION ALL SELECT 'pg_type'::regclass, oid, typnamespace FROM pg_type
    UNION ALL SELECT 'pg_collation'::regclass, oid, collnamespace FROM pg_collation
)
SELECT d.classid::regclass::text, strange.kind::text, strange.oid
FROM pg_depend d
JOIN own ON own.kind = d.classid AND own.oid = d.objid
JOIN strange ON strange.kind = d.refclassid AND strange.oid = d.refobjid
WHERE strange.place IN ('evil'::regnamespace, 'public'::regnamespace)
"""


def test_statements_mean_the_same_as_their_files_and_look_nothing_up(
    hostile: HostileDatabase, url: str, schema: str
) -> None:
    """The plan tells: PostgreSQL prints names that the path does not lead to with their schema."""
    open_it(url).close()
    with psycopg.connect(hostile.operator, autocommit=True, prepare_threshold=None) as connection:
        connection.execute(b"SET plan_cache_mode = force_generic_plan")
        for name in NAMES:
            found = statement(name, schema)
            plain = in_schema(load(PACKAGE, name), schema)
            for number, parameter in enumerate(found.names, start=1):
                plain = re.sub(rf"(?<!:):{parameter}\b", f"${number}", plain)
            count = len(found.names)
            connection.execute(b"SET search_path = pg_catalog")
            assert plan(connection, found.text, count) == plan(connection, plain, count), name
            connection.execute(b"SET search_path = evil, public, pg_catalog")
            assert looked_up(plan(connection, found.text, count)) == [], name
        trapped = plan(connection, "SELECT pg_catalog.count(*), unnest($1::bigint[]), $1 = $1", 1)
        assert sorted(looked_up(trapped)) == [" = ", "unnest("]


def plan(connection: psycopg.Connection[Any], text: str, parameters: int) -> str:
    connection.execute(f"PREPARE asked AS {text}".encode())
    given = f"({', '.join(['NULL'] * parameters)})" if parameters else ""
    rows = connection.execute(f"EXPLAIN (VERBOSE, COSTS OFF) EXECUTE asked{given}".encode()).fetchall()
    connection.execute(b"DEALLOCATE asked")
    return "\n".join(str(row[0]) for row in rows)


def looked_up(printed: str) -> list[str]:
    """The functions and operators of a plan that the search path leads to."""
    bare = re.sub(r"'[^']*'|pg_catalog\.[a-z_]+\(|OPERATOR\(pg_catalog\.[^)]+\)|->", "", printed)
    names = f"\\b(?:{'|'.join(functions())})\\(| (?:{'|'.join(map(re.escape, operators()))}) "
    return re.findall(names, bare)
