"""A pool in this process, on an event loop of its own."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from queueber.worker.handlers.runner import CANCEL_SECONDS_MAX
from queueber.worker.pool.pool import Pool
from queueber.worker.progress import EventLogger, WorkerStats
from queueber.worker.worker_settings import WorkerSettings


class InProcessRun:
    """A pool in this process, on a loop of its own."""

    def __init__(self, settings: WorkerSettings, log: EventLogger) -> None:
        self._pool = Pool(settings, log)
        self._loop = asyncio.new_event_loop()
        self.on_connected: Callable[[], object] = lambda: None

    def run(self) -> None:
        self._pool.on_connected(self.on_connected)
        run_loop(self._loop, self._pool.run())

    def stop(self, *, now: bool) -> None:
        """May be called from every thread, and from a signal handler."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(partial(self._pool.stop, now=now))
        if now:
            self._pool.interrupt()

    def stats(self) -> WorkerStats:
        return self._pool.stats()


def run_loop(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, None]) -> None:
    """As `asyncio.run`, but tasks of handlers that refuse to end are abandoned after a second."""
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=CANCEL_SECONDS_MAX))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
