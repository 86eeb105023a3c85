"""What a type checker must refuse: each line marked with an error must give one, and no other line may."""

from __future__ import annotations

from perdure import App, Retry

app = App("sqlite://")


@app.task
def bare(x: int) -> str:
    return str(x)


@app.task(queue="mail")
async def send(to: str, body: str) -> None: ...


bare("one")  # error
bare.enqueue("one")  # error
bare.enqueue(1, 2)  # error
bare.enqueue()  # error
bare.bind(y=1)  # error
send.enqueue("a@b.c", 7)  # error
send.enqueue(to="a@b.c")  # error
send.options(priority="high")  # error
send.options(delivery="exactly_once")  # error
send.options(delay="5m").enqueue(1, "hi")  # error
send.options(retries=3)  # error
app.enqueue_many([send])  # error
app.task(timout="5s")  # error
app.http.post("https://example.com/", tiemout="5s")  # error
app.http.post("https://example.com/", retry_on="some")  # error
app.http.request("https://example.com/")  # error
Retry.exponential()  # error
Retry.fixed("5s", jitter="some")  # error


async def asynchronous() -> None:
    await send.enqueue_async("a@b.c", 7)  # error
