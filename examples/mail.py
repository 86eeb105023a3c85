"""Mails that are sent again when the server fails: a task, its retry policy, and three jobs.

Enqueue the jobs, then run them (Ctrl-C stops the worker):

    cd examples
    python mail.py
    perdure worker mail:app --queues mail

The jobs are kept in perdure.db in the working directory; PERDURE_URL names another place. See how they fared with
`perdure jobs ls`, and what could not be sent with `perdure dlq ls`.
"""

from __future__ import annotations

from perdure import App, GiveUp, Retry, current_job

app = App()

# After a failure wait up to 0.2 s, then 0.4 s, 0.8 s, … never more than 10 s, and stop after five attempts.
# A wrong address stays wrong, so there is no second attempt after a ValueError.
patiently = Retry.exponential("200ms", cap="10s", max_attempts=5).never(ValueError)


@app.task(queue="mail", timeout="30s", retry=patiently)
async def send(to: str, body: str) -> None:
    """Send one mail. Whatever it raises is a failed attempt; when it returns, the mail is sent."""
    if "@" not in to:
        raise ValueError(f"{to!r} is not an address")
    if to.startswith("closed"):
        raise GiveUp("this customer wants no more mail")  # the same, said by the handler
    job = current_job()
    if job.attempt < 3:
        raise ConnectionError("the mail server is restarting")
    # The key is the same for every attempt: a server that knows it sends the mail once, even if we ask twice.
    print(f"sent to {to} at attempt {job.attempt} of {job.max_attempts}, key {job.idempotency_key}", flush=True)


def main() -> None:
    """Enqueue three mails; when enqueue returns, the job is durable."""
    first = send.enqueue("ada@example.org", body="Your order is on its way.")
    # The same key while that job lives: no second mail, however often somebody clicks.
    again = [send.options(unique="order-7").enqueue("bob@example.org", body="Thank you!") for _ in range(2)]
    wrong = send.options(priority=10).enqueue("no address", body="This one will be dead at once.")
    print(f"enqueued {first}, {again[0]} and {wrong}")
    print("run them with: perdure worker mail:app --queues mail")
    assert again[0] == again[1]
    app.close()


if __name__ == "__main__":
    main()
