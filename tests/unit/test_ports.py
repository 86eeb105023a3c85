"""Ports for the servers of the tests: none is given out twice, also not to two processes."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.servers.ports import RANGE, free_port

ASK = (
    "from tests.servers.ports import free_port; print(*(free_port(also=(1,)) for _ in range(20)), flush=True); input()"
)


def test_ports_of_several_processes_differ_and_lie_below_those_of_the_system() -> None:
    root = Path(__file__).parents[2]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASK], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    told = [process.stdout.readline().split() for process in processes if process.stdout is not None]
    ports = [int(port) for line in told for port in line] + [free_port(also=(1,)) for _ in range(20)]
    for process in processes:
        process.communicate("\n", timeout=300)
    assert len({*ports, *(port + 1 for port in ports)}) == 120
    assert all(port in RANGE for port in ports)


def test_a_port_that_somebody_listens_on_is_not_given_out() -> None:
    first = free_port()
    with socket.create_server(("127.0.0.1", first)):
        assert first not in {free_port() for _ in range(5)}
