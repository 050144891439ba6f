"""A pool in this process, on a loop of its own."""

import asyncio
import contextlib
from collections.abc import Coroutine
from functools import partial
from typing import Any

from queueber.worker.contact import Journal
from queueber.worker.pool import Pool
from queueber.worker.settings import Settings
from queueber.worker.tally import WorkerStats

_TIDY_SECONDS_MAX = 1.0
"""How long tasks that a handler left behind have to end."""


class LocalRun:
    def __init__(self, settings: Settings, journal: Journal, *, is_until_empty: bool) -> None:
        self._pool = Pool(settings, journal, is_until_empty=is_until_empty)
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        run_loop(self._loop, self._pool.run())

    def stop(self, *, now: bool) -> None:
        """May be called from every thread, and from a signal handler."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(partial(self._pool.stop, now=now))

    def stats(self) -> WorkerStats:
        return self._pool.stats()


def run_loop(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, None]) -> None:
    """As `asyncio.run`, but what refuses to end is left behind: shutting down takes no for ever."""
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_TIDY_SECONDS_MAX))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
