"""An order and the job that follows from it, in one transaction: both are there, or neither is.

With the queue in the same SQLite file as your own tables, a job can be enqueued through your own connection. It
becomes visible to workers when you commit, and is gone when you roll back: no receipt for an order that does not
exist, no order whose receipt was forgotten because the program died between two writes.

    python transactional_enqueue.py
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from perdure import App


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder, "shop.db"))


def run(file: Path) -> None:
    app = App(f"sqlite:///{file}")

    @app.task
    def send_receipt(order: int) -> None:
        print(f"receipt for order {order}")

    with app.client() as client, closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")

        # `with connection` commits at the end of the block, or rolls back when something is raised in it.
        with connection:
            order = connection.execute("INSERT INTO orders (item) VALUES ('a lamp')").lastrowid
            assert order is not None
            job_id = send_receipt.options(connection=connection).enqueue(order)
            print(f"before the commit: {client.count()} jobs")
        print(f"after the commit: {client.count()} job, {client.get(job_id).state}")

        try:
            with connection:
                connection.execute("INSERT INTO orders (item) VALUES ('a chair')")
                send_receipt.options(connection=connection).enqueue(2)
                raise RuntimeError("the payment failed")
        except RuntimeError as error:
            (orders,) = connection.execute("SELECT COUNT(*) FROM orders").fetchone()
            print(f"after {str(error)!r}: {orders} order, {client.count()} job")
    app.close()


if __name__ == "__main__":
    main()
