"""Migrations: numbered, once, under a lock; old and new stores are refused; schemas live beside each other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.engine_postgres.scene import RealScene
from tests.servers import postgres

from perdure import App
from perdure.engines.migrator import migrations
from perdure.engines.opener import open_store
from perdure.engines.postgres.sql import PACKAGE, in_schema, quoted
from perdure.errors import SchemaTooNew, SchemaTooOld
from perdure.model.queue.settings import QueueSettings
from perdure.store import Store
from perdure.system.clock import SystemClock

TABLES = ["attempts", "forwards", "jobs", "notes", "queue_settings", "queues", "schedules", "schema", "workers"]


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """The URL of a store that has no tables yet."""
    return postgres.with_options(postgres.shared_server(), schema=postgres.schema_of(tmp_path))


def open_it(url: str, *, auto_migrate: bool | None = None) -> Store:
    return open_store(url, clock=SystemClock(), auto_migrate=auto_migrate)


def tables(schema: str) -> list[str]:
    with psycopg.connect(postgres.shared_server()) as connection:
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename", [schema]
        ).fetchall()
    return [name for (name,) in rows]


def test_a_store_without_tables_is_too_old_and_the_command_is_named(empty: str, schema: str) -> None:
    with pytest.raises(SchemaTooOld, match="perdure db migrate"):
        open_it(empty)
    assert tables(schema) == []


def test_asked_for_it_the_tables_are_made(empty: str, schema: str) -> None:
    store = open_it(empty, auto_migrate=True)
    assert store.schema().wait().is_current
    store.close()
    assert tables(schema) == TABLES
    open_it(empty).close()


def test_many_who_migrate_at_once_make_the_tables_once(empty: str, schema: str) -> None:
    errors: list[Exception] = []

    def migrate() -> None:
        try:
            open_it(empty, auto_migrate=True).close()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=migrate) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert tables(schema) == TABLES


@pytest.mark.parametrize("auto_migrate", [True, False])
def test_a_store_of_a_newer_perdure_is_refused(url: str, dsn: str, auto_migrate: bool) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO schema VALUES (99, 0)")
    with pytest.raises(SchemaTooNew, match="Upgrade"):
        open_it(url, auto_migrate=auto_migrate)


def test_the_statements_that_are_printed_make_the_same_schema(empty: str, schema: str, tmp_path: Path) -> None:
    script = App(empty).schema_sql()
    with psycopg.connect(postgres.shared_server(), autocommit=True) as connection:
        connection.execute(script.encode())
    store = open_it(empty)
    assert store.schema().wait().is_current
    RealScene(store).enqueue()
    store.close()
    other = tmp_path / "other"
    postgres.make_url(other)
    assert shape(schema) == shape(postgres.schema_of(other))


def shape(schema: str) -> list[tuple[str, ...]]:
    """Columns, constraints and indexes of a schema, without its name."""
    with psycopg.connect(postgres.shared_server()) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = %s ORDER BY 1, 2",
            [schema],
        ).fetchall()
        indexes = connection.execute(
            "SELECT tablename, indexname, replace(indexdef, %s, '') FROM pg_indexes WHERE schemaname = %s"
            " ORDER BY 1, 2",
            [schema, schema],
        ).fetchall()
        checks = connection.execute(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = %s::regnamespace"
            " ORDER BY 1, 2",
            [quoted(schema)],
        ).fetchall()
    return [*columns, *indexes, *checks]


def test_several_schemas_in_one_database_know_nothing_of_each_other(tmp_path: Path) -> None:
    own = postgres.schema_of(tmp_path)
    names = [f"{own}$1", f"{own}-Mixed-Case", f"{own}-mixed-case", own + "x" * (63 - len(own))]
    urls = [postgres.with_options(postgres.shared_server(), schema=name) for name in names]
    stores = [open_it(url, auto_migrate=True) for url in urls]
    for store in stores:
        RealScene(store).enqueue()
    for store in stores:
        assert [queue.ready for queue in store.queues().wait()] == [1]
        store.close()


@pytest.mark.parametrize("path", ["pg_catalog", "public", "nowhere", "information_schema,pg_catalog"])
def test_whatever_the_search_path_is_the_stores_own_tables_are_used(url: str, path: str) -> None:
    store = open_it(postgres.with_options(url, options=f"-csearch_path={path}"))
    scene = RealScene(store)
    job = scene.running()
    assert scene.get(job.id).state == "running"
    store.close()


def make_first_version(schema: str) -> None:
    """The tables as the first version made them, with a paused queue and a ready job."""
    first = migrations(PACKAGE)[0]
    with psycopg.connect(postgres.shared_server(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {quoted(schema)}".encode())
        connection.execute(in_schema(first.text, schema).encode())
        connection.execute(in_schema("INSERT INTO perdure.schema VALUES (1, 0)", schema).encode())
        connection.execute(in_schema("INSERT INTO perdure.queues VALUES ('mail', 5, 'upgrade')", schema).encode())
        connection.execute(
            in_schema(
                "INSERT INTO perdure.jobs (id, run_at, created_at, priority, state, delivery, task, queue, args)"
                " VALUES (gen_random_uuid(), 1, 1, 0, 'ready', 'at_least_once', 'send', 'mail', '{}')",
                schema,
            ).encode()
        )


def test_a_store_of_the_first_version_is_migrated_once_those_who_work_on_it_are_done(empty: str, schema: str) -> None:
    make_first_version(schema)
    with pytest.raises(SchemaTooOld):
        open_it(empty)
    with psycopg.connect(postgres.shared_server()) as busy:
        # A claim that has not ended holds its locks on the jobs.
        busy.execute(in_schema("UPDATE perdure.jobs SET priority = 1", schema).encode())
        with ThreadPoolExecutor(1) as beside:
            migrating = beside.submit(open_it, empty, auto_migrate=True)
            with pytest.raises(TimeoutError):
                migrating.result(0.3)
            busy.rollback()
            store = migrating.result(60)
    (queue,) = store.queues().wait()
    assert (queue.ready, queue.is_paused, queue.pause_reason, queue.paused_until) == (1, True, "upgrade", None)
    worker = RealScene(store).worker()
    assert RealScene(store).fetch(worker) == []
    store.configure("mail", QueueSettings(concurrency=1)).wait()
    assert store.resume("mail").wait() is True
    assert len(RealScene(store).fetch(worker, concurrency=1)) == 1
    store.close()


def test_a_migrated_store_has_the_same_shape_as_a_new_one(empty: str, schema: str, tmp_path: Path) -> None:
    make_first_version(schema)
    open_it(empty, auto_migrate=True).close()
    other = tmp_path / "other"
    postgres.make_url(other)
    assert shape(schema) == shape(postgres.schema_of(other))


def test_the_server_finds_out_little_about_any_column_of_jobs(empty: str, schema: str) -> None:
    """Or it would go through a busy table at length again and again; a new column has to say what it needs too."""
    open_it(empty, auto_migrate=True).close()
    with psycopg.connect(postgres.shared_server()) as connection:
        rows = connection.execute(
            "SELECT attname, attstattarget FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            [f"{quoted(schema)}.jobs"],
        ).fetchall()
    targets = dict(rows)
    assert len(targets) > 30
    assert {name for name, target in targets.items() if target is None or not 0 <= target <= 10} == set()
    assert targets["args"] == 0
    assert targets["queue"] == 10
