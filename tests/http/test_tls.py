"""TLS is checked against the name in the URL, although the connection goes to the address that was checked."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.http.test_connections import ended, working

from perdure import App, Settings

SETTINGS = Settings(http_allow=("127.0.0.1", "::1"))


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """Certificates for two names, signed by nobody but themselves, made for this one test."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("certificates are made with the openssl program, and this machine has none")
    for name in ("localhost", "other.example"):
        command = (
            f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name}"
        )
        files = ["-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.pem"]
        extra = ["-addext", f"subjectAltName=DNS:{name}"]
        subprocess.run([*command.split(), *files, *extra], check=True, capture_output=True)
    return tmp_path


async def send(certificate: Path) -> tuple[str, str]:
    """A request to https://localhost, where a server with this certificate listens: the state, and what went wrong."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    server = await asyncio.start_server(answer, "localhost", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    app = App("sqlite://", settings=SETTINGS)
    try:
        async with server, working(app):
            job_id = await app.http.get(f"https://localhost:{port}/", max_attempts=1).enqueue_async()
            [state] = await ended(app, job_id)
            job = app.client().get(job_id)
        return state, "" if job.error is None else job.error.message
    finally:
        app.close()


async def test_a_certificate_that_is_trusted_and_names_the_host_is_accepted(certificates: Path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "localhost.pem"))
    assert await send(certificates / "localhost.pem") == ("succeeded", "")


async def test_a_certificate_that_nobody_trusts_is_refused(certificates: Path):
    state, message = await send(certificates / "localhost.pem")
    assert state == "dead"
    assert "the certificate is not trusted: self-signed certificate" in message


async def test_a_certificate_of_another_name_is_refused(certificates: Path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "other.example.pem"))
    state, message = await send(certificates / "other.example.pem")
    assert state == "dead"
    assert "Hostname mismatch" in message
