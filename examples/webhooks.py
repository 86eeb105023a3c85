"""Webhooks that survive a receiver's bad day: signed requests, tried again until they arrive.

A receiver of our own listens on this machine, fails twice, and then checks the signature:

    cd examples
    python webhooks.py

In earnest the receiver is somebody else's, `app.http.post(...)` is all there is to write, and any worker sends it.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from perdure import App, BadSignature, Retry, Settings
from perdure.http import verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

# Only public addresses are reached by default; this receiver is on loopback. Workers usually get both from their
# environment: PERDURE_HTTP_ALLOW and PERDURE_HTTP_SIGNING_SECRETS.
app = App("sqlite://", settings=Settings(http_allow=("127.0.0.1",), http_signing_secrets=(SECRET,)))


class Receiver(BaseHTTPRequestHandler):
    """Fails twice, then accepts what is signed."""

    calls = 0

    def do_POST(self) -> None:
        Receiver.calls += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 503 if Receiver.calls < 3 else 200 if self.is_signed(body) else 401
        print(f"attempt {self.headers['Perdure-Attempt']} of {self.headers['Idempotency-Key'][:8]}… answered {status}")
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def is_signed(self, body: bytes) -> bool:
        try:
            verify(
                body, dict(self.headers), SECRET, tolerance="3650d"
            )  # the clock of `app.testing()` is not the real one
        except BadSignature:
            return False
        return True

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    """Send one webhook on a clock that we move ourselves."""
    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with app.testing() as t:
        url = f"http://127.0.0.1:{receiver.server_port}/hook"
        patiently = Retry.exponential("1s", cap="1h", jitter="none", max_attempts=10)
        job_id = app.http.post(url, json={"order": 7}, sign=True, retry=patiently).enqueue()
        t.advance("1h")
        print(f"the job {t.job(job_id).state} after {len(t.history(job_id))} attempts")
    receiver.shutdown()
    receiver.server_close()


if __name__ == "__main__":
    main()
