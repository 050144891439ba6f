"""Handlers that ran too long and cannot be ended: what a pool does about the slots they take up.

A worker process is replaced after the first one. Elsewhere nothing can free a slot, so the pool
goes on with fewer; when none is left, it waits as long as one handler may take, and then ends.
"""

import asyncio
from collections.abc import Callable

from queueber.worker.handlers.runner import Runner
from queueber.worker.handlers.runners import BothRunners
from queueber.worker.handlers.time_limit import HandlersStuck
from queueber.worker.pool.background import first_of
from queueber.worker.progress import Counters, EventLogger
from queueber.worker.worker_settings import WorkerSettings

AnyRunner = Runner | BothRunners


class StuckHandlers:
    def __init__(self, settings: WorkerSettings, counters: Counters, log: EventLogger) -> None:
        self._concurrency = settings.concurrency
        self._limit_seconds = 0.0
        """The longest time limit of those that are stuck."""
        self._is_replaceable = settings.is_replaceable
        self._counters = counters
        self._log = log
        self._is_any = asyncio.Event()
        self._are_all = asyncio.Event()
        self._is_one_free = asyncio.Event()
        self.is_retiring = False
        """The process ends because of a handler, and another is to be started."""

    @property
    def are_all(self) -> bool:
        """Whether no handler is left."""
        return self._are_all.is_set()

    def update(self, runner: AnyRunner) -> None:
        """Handlers are stuck, or are not any more."""
        stuck, before = runner.stuck, self._counters.stuck
        if stuck == before:
            return
        slots = runner.stuck_slots
        self._counters.stuck, self._counters.stuck_slots = stuck, slots
        self._limit_seconds = runner.stuck_limit
        if stuck > before:
            self._is_any.set()
            self._log.warning("handlers_stuck", count=stuck, free=self._concurrency - slots)
        if slots < self._concurrency:
            self._are_all.clear()
            self._is_one_free.set()
        else:
            self._is_one_free.clear()
            self._are_all.set()

    async def run(self, release_waiting: Callable[[], None]) -> None:
        """Return when the process is to be replaced; raise when no handler is left."""
        await self._is_any.wait()
        if self._is_replaceable:
            self.is_retiring = True
            return
        while True:
            await self._are_all.wait()
            release_waiting()
            limit = self._limit_seconds
            if not await first_of(self._is_one_free.wait(), seconds=limit):
                raise HandlersStuck(
                    f"all {self._concurrency} handlers ran longer than {limit:g} s (their timeout) "
                    "and did not end; threads cannot be ended: restart the worker, or run handlers "
                    "in processes, which are replaced"
                )
