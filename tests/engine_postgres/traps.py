"""A database with a hostile search path: overloads of the functions, operators and types that the statements use.

Each trap counts its call in a sequence, which no rollback takes back, and then fails.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from tests.servers import postgres

from perdure.engines.postgres.qualify import TYPES
from perdure.engines.postgres.sql import statement

SQL = Path(__file__).parents[2] / "src" / "perdure" / "engines" / "postgres" / "sql"
NAMES = sorted(path.stem for path in SQL.glob("*.sql"))
TABLES = ("schema", "jobs", "attempts", "workers", "queues", "queue_settings", "notes", "schedules", "forwards")

_FUNCTION = re.compile(r"pg_catalog\.([a-z_]+)\(")
_OPERATOR = re.compile(r"OPERATOR\(pg_catalog\.([^)]+)\)")

_MAKE_TRAPS = r"""
DO $do$
DECLARE
    place pg_catalog.text; name pg_catalog.text; args pg_catalog.text; one pg_catalog.text; other pg_catalog.text;
    types pg_catalog.text[] := '{text,varchar,int4,int8,numeric,uuid,bool,bytea,json,name,oid,"\"char\""}';
BEGIN
    FOREACH place IN ARRAY '{evil,public}'::pg_catalog.text[] LOOP
        EXECUTE pg_catalog.format($f$CREATE FUNCTION %I.spring() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $b$
            BEGIN
                PERFORM pg_catalog.nextval('evil.calls');
                RAISE EXCEPTION 'a trap was sprung';
            END $b$$f$, place);
        FOR name, args IN
            SELECT p.proname, a.args FROM pg_catalog.pg_proc p,
            LATERAL (
                SELECT pg_catalog.oidvectortypes(p.proargtypes) AS args
                UNION SELECT pg_catalog.regexp_replace(pg_catalog.regexp_replace(
                    pg_catalog.oidvectortypes(p.proargtypes), '"any"|any(compatible)?array', t || '[]', 'g'),
                    'any[a-z]*', t, 'g')
                FROM pg_catalog.unnest(types) AS t
                UNION SELECT t FROM pg_catalog.unnest(types) AS t
                WHERE pg_catalog.oidvectortypes(p.proargtypes) = '"any"'
                UNION SELECT t || ',' || u FROM pg_catalog.unnest(types) AS t, pg_catalog.unnest(types) AS u
                WHERE p.provariadic <> 0
            ) AS a
            WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.proname = ANY (%(functions)s)
            AND a.args !~ 'any|internal|cstring|\[\]\[\]'
        LOOP
            EXECUTE pg_catalog.format($f$CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS bigint LANGUAGE plpgsql AS
                $b$ BEGIN PERFORM public.spring(); RETURN 0; END $b$$f$, place, name, args);
        END LOOP;
        FOREACH one IN ARRAY types LOOP
            FOREACH other IN ARRAY types LOOP
                EXECUTE pg_catalog.format($f$CREATE FUNCTION %I.snap(%s, %s) RETURNS boolean LANGUAGE plpgsql AS
                    $b$ BEGIN PERFORM public.spring(); RETURN true; END $b$$f$, place, one, other);
                FOREACH name IN ARRAY %(operators)s LOOP
                    EXECUTE pg_catalog.format(
                        'CREATE OPERATOR %I.%s (FUNCTION = %I.snap, LEFTARG = %s, RIGHTARG = %s)',
                        place, name, place, one, other);
                END LOOP;
            END LOOP;
        END LOOP;
    END LOOP;
END $do$
"""


def functions() -> list[str]:
    return sorted({name for one in NAMES for name in _FUNCTION.findall(statement(one, "perdure").text)})


def operators() -> list[str]:
    return sorted({name for one in NAMES for name in _OPERATOR.findall(statement(one, "perdure").text)})


class HostileDatabase:
    """A database of its own, a role whose search path begins with the traps, and how many traps were sprung."""

    def __init__(self, dsn: str, role: str, name: str) -> None:
        self.operator = dsn
        self.name = name
        self.dsn = urlsplit(dsn)._replace(netloc=f"{role}:secret@{urlsplit(dsn).netloc.rpartition('@')[2]}").geturl()
        """Where the role connects to."""

    def sprung(self) -> int:
        with psycopg.connect(self.operator) as connection:
            ((count, is_called),) = connection.execute("SELECT last_value, is_called FROM evil.calls").fetchall()
        return int(count) if is_called else 0


@contextmanager
def hostile_database() -> Iterator[HostileDatabase]:
    """Made for one module of tests, and dropped after it."""
    token = secrets.token_hex(4)
    name, role = f"hostile_{token}", f"app_{token}"
    server = postgres.shared_server()
    with psycopg.connect(server, autocommit=True) as operator:
        operator.execute(f"CREATE DATABASE {name}".encode())
        operator.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'".encode())
        operator.execute(f"GRANT CREATE, CONNECT, TEMPORARY ON DATABASE {name} TO {role}".encode())
        path = "evil, public, pg_catalog"
        operator.execute(f"ALTER ROLE {role} IN DATABASE {name} SET search_path = {path}".encode())
    dsn = urlsplit(server)._replace(path=f"/{name}").geturl()
    with psycopg.connect(dsn, autocommit=True) as operator:
        _set_traps(operator, role)
    yield HostileDatabase(dsn, role, name)
    with psycopg.connect(server, autocommit=True) as operator:
        operator.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        operator.execute(f"DROP ROLE {role}".encode())


def _set_traps(operator: psycopg.Connection[tuple[object, ...]], role: str) -> None:
    operator.execute(b"SET search_path = pg_catalog")
    operator.execute(f"CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil, public TO {role}".encode())
    operator.execute(b"CREATE SEQUENCE evil.calls")
    text = _MAKE_TRAPS
    for key, values in (("functions", functions()), ("operators", operators())):
        text = text.replace(f"%({key})s", f"ARRAY[{', '.join(repr(one) for one in values)}]::pg_catalog.text[]")
    operator.execute(text.encode())
    for schema in ("evil", "public"):
        for table in TABLES:
            operator.execute(f"CREATE TABLE {schema}.{table} (trap integer)".encode())
        operator.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}".encode())
        for kind in (*TYPES, "int4", "int8", "bool"):
            operator.execute(f'CREATE TYPE {schema}."{kind}" AS (trap integer)'.encode())
        operator.execute(f"CREATE COLLATION {schema}.\"C\" (provider = libc, locale = 'POSIX')".encode())
