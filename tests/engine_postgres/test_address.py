"""URLs of PostgreSQL stores: what they may say, and errors that give nothing away."""

from __future__ import annotations

import subprocess
import sys

import pytest

from perdure.engines.opener import open_store
from perdure.engines.postgres.address import read_address
from perdure.errors import BadSetting
from perdure.system.clock import SystemClock

SECRET = "hunter2"


def test_what_is_the_drivers_goes_to_the_driver() -> None:
    address = read_address("user:p%40ss@db.example:5433/app?sslmode=require&application_name=a+b%20c&schema=jobs")
    assert address.driver["host"] == "db.example"
    assert (address.driver["port"], address.driver["dbname"], address.driver["password"]) == ("5433", "app", "p@ss")
    assert (address.driver["sslmode"], address.driver["application_name"]) == ("require", "a+b c")
    assert address.schema == "jobs"


def test_without_options_the_defaults_hold() -> None:
    address = read_address("db.example/app")
    assert (address.schema, address.has_pooler, address.has_hints) == ("perdure", False, True)
    assert address.driver["connect_timeout"] == 5
    assert address.driver["keepalives"] == 1


def test_what_the_url_says_wins_over_the_defaults() -> None:
    address = read_address("db.example/app?connect_timeout=9&timeout=2.5&connections=3&pooler=yes&listen=off")
    assert address.driver["connect_timeout"] == "9"
    assert (address.timeout, address.connections, address.has_pooler, address.has_hints) == (2.5, 3, True, False)


def test_several_hosts_and_sockets_can_be_named() -> None:
    assert read_address("one:5432,two:5433/app?target_session_attrs=read-write").driver["host"] == "one,two"
    assert read_address("/app?host=/run/postgresql").driver["host"] == "/run/postgresql"


def test_the_name_of_a_store_has_no_secrets() -> None:
    assert SECRET not in read_address(f"user:{SECRET}@db.example/app?password={SECRET}").name


@pytest.mark.parametrize(
    "options",
    [
        "schema=",
        "schema=1st",
        "schema=pg_jobs",
        "schema=a%22b",
        "schema=a.b",
        f"schema={'x' * 64}",
        "pooler=perhaps",
        "listen=2",
        "timeout=0",
        "timeout=soon",
        "timeout=nan",
        "connections=0",
        "no_such_option=1",
        "sslmode=%zz",
    ],
)
def test_an_option_that_cannot_be_is_refused_and_the_password_stays_secret(options: str) -> None:
    with pytest.raises(BadSetting) as raised:
        open_store(f"postgres://user:{SECRET}@db.example/app?{options}", clock=SystemClock())
    assert SECRET not in f"{raised.value} {raised.value.__cause__} {raised.value.__context__}"


def test_without_the_driver_the_error_names_what_to_install() -> None:
    script = (
        "import sys\n"
        "sys.modules['psycopg'] = None\n"
        "from perdure import App\n"
        "try: App('postgresql://db.example/app').store\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.startswith("Unsupported ")
    assert "pip install perdure[postgres]" in done.stdout
