"""The queues of a pool: each is polled, has its leases extended, and gets its outcomes reported.

Most pools have one. With several, each may hold a part of the pool's items that is its weight among
those of the queues that have items now; so a queue that is empty takes up nothing.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from queueber.client import AsyncClient, AsyncLease
from queueber.worker.handlers.runner import Finished
from queueber.worker.handlers.work_item import HeldLease, Unfinished, WorkItem
from queueber.worker.pool.background import all_of, first_of
from queueber.worker.pool.poller import Poller
from queueber.worker.pool.reporter import SENDERS, Reporter
from queueber.worker.pool.server_health import Heartbeat, ServerHealth
from queueber.worker.pool.unknown_kinds import UnknownKinds
from queueber.worker.progress import Counters, EventLogger
from queueber.worker.worker_settings import WorkerSettings

_UNREPORTED_MAX = 10_000
"""Outcomes that may be unreported before the pool stops to lease more."""


class Feed:
    """One of the queues."""

    def __init__(self, weight: int, heartbeat: Heartbeat, reporter: Reporter) -> None:
        self.weight = weight
        self.heartbeat = heartbeat
        self.reporter = reporter
        self.held = 0
        """Items of this queue that wait or are with handlers; counted if there are several."""
        self.poller: Poller

    @property
    def is_active(self) -> bool:
        return self.held > 0 or self.poller.has_found


class Feeds:
    def __init__(
        self,
        client: AsyncClient,
        settings: WorkerSettings,
        health: ServerHealth,
        counters: Counters,
        log: EventLogger,
        items: set[WorkItem],
        unknown: UnknownKinds,
    ) -> None:
        self._client = client
        self._settings = settings
        self._health = health
        self._counters = counters
        self._log = log
        self._items = items
        self._unknown = unknown
        self._feeds: dict[str, Feed] = {}
        self._leases = 0
        """Leases that polls have brought so far."""

    def add(
        self,
        name: str,
        weight: int,
        queue: Any,
        on_leased: Callable[[AsyncLease, HeldLease], None],
        on_lost: Callable[[HeldLease], None],
        on_settled: Callable[[HeldLease, int], None],
    ) -> None:
        settings, health = self._settings, self._health
        feed = Feed(
            weight,
            Heartbeat(queue, health, settings.lease_seconds, on_lost),
            Reporter(queue, health, self._counters, self._log, on_settled, settings.on_lease_lost),
        )

        def leased(lease: AsyncLease) -> None:
            self._leases += 1
            held = HeldLease(lease.id, len(lease), asyncio.get_running_loop().time(), source=name)
            feed.heartbeat.add(held)
            feed.held += len(lease)
            on_leased(lease, held)

        feed.poller = Poller(
            self._client,
            queue,
            settings,
            health,
            self._counters,
            self._log,
            self._items,
            leased,
            partial(self._share_of, feed),
            partial(self._unknown.held_of, name),
            partial(self._let_go, name),
            source=name,
        )
        self._feeds[name] = feed

    def background(self) -> list[Callable[[], Any]]:
        """What runs without end while the pool does."""
        return [
            run
            for feed in self._feeds.values()
            for run in (feed.heartbeat.run, *[feed.reporter.run] * SENDERS)
        ]

    async def run(self) -> None:
        """Poll all queues. Returns only if the pool runs until they are empty or done."""
        await first_of(self._poll_all(), self._unknown.wait_too_many())

    async def _poll_all(self) -> None:
        while True:
            leases_before = self._leases
            await all_of(*[feed.poller.run() for feed in self._feeds.values()])
            # What one queue had may have added items to another that was empty before.
            if len(self._feeds) == 1 or self._leases == leases_before:
                return

    def update(self) -> None:
        """Items came or went."""
        for feed in self._feeds.values():
            feed.poller.update()

    # --- outcomes ---------------------------------------------------------------------------------

    def ended(self, items: Iterable[WorkItem]) -> None:
        """These are neither waiting nor with handlers any more."""
        if len(self._feeds) > 1:
            for item in items:
                self._feeds[item.lease.source].held -= 1

    def send(self, outcomes: Sequence[Finished]) -> None:
        for reporter, some in self._by_reporter(outcomes, lambda outcome: outcome[0]):
            reporter.send(some)

    def lose(self, items: Sequence[WorkItem], reason: str) -> None:
        for reporter, some in self._by_reporter(items, lambda item: item):
            reporter.lose(some, reason)

    def release_unknown(self, items: Sequence[WorkItem]) -> None:
        self.send([(item, Unfinished.UNKNOWN_KIND) for item in items])

    def _let_go(self, source: str) -> bool:
        items = self._unknown.withdraw_of(source)
        self.release_unknown(items)
        return bool(items)

    def flush_logs(self) -> None:
        """Log what was held back at last: the run ends."""
        for feed in self._feeds.values():
            feed.reporter.refused_results.flush(is_end=True)

    def forget(self, lease: HeldLease) -> None:
        self._feeds[lease.source].heartbeat.forget(lease)

    async def wait_reported(self) -> None:
        for feed in self._feeds.values():
            await feed.reporter.is_empty.wait()

    def _by_reporter(
        self, listed: Sequence[Any], item_of: Callable[[Any], WorkItem]
    ) -> Iterable[tuple[Reporter, list[Any]]]:
        if len(self._feeds) == 1:
            (only,) = self._feeds.values()
            return [(only.reporter, list(listed))]
        parts: dict[str, list[Any]] = {}
        for each in listed:
            parts.setdefault(item_of(each).lease.source, []).append(each)
        return [(self._feeds[source].reporter, part) for source, part in parts.items()]

    # --- shares -----------------------------------------------------------------------------------

    def _share_of(self, feed: Feed) -> tuple[int, int]:
        """How many items the queue may have in the pool, and how many more than now."""
        free = self._settings.concurrency - self._counters.stuck_slots
        if not free or self._unknown.is_full:
            return 0, 0
        share, held = free + self._settings.prefetch, len(self._items)
        if len(self._feeds) > 1:
            others = [each for each in self._feeds.values() if each.is_active and each is not feed]
            weights = feed.weight + sum(each.weight for each in others)
            share, held = math.ceil(share * feed.weight / weights), feed.held
        return share, min(share - held, _UNREPORTED_MAX - self._counters.unreported)
