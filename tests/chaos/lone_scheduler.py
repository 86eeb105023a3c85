"""A process that fires schedules and runs no jobs, until it is killed."""

from __future__ import annotations

import asyncio

from perdure import App


async def main() -> None:
    await App().make_scheduler().run()


if __name__ == "__main__":
    asyncio.run(main())
