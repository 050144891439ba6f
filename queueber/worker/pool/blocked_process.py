"""A worker process whose event loop a late coroutine blocks: nothing on the loop can cancel it.

So the item fails from the thread that watches the loop, over a connection of its own, and the other
items go back, before the process is replaced. Otherwise the server would only see a connection that
broke, and could not tell the item that is to blame from the others.
"""

from collections.abc import Callable, Iterable
from typing import Any

from queueber.client import Client, connect
from queueber.errors import QueueberError
from queueber.model import FailOutcome
from queueber.worker.handlers.work_item import Failed, WorkItem
from queueber.worker.progress import Counters
from queueber.worker.worker_settings import WorkerSettings

_CONNECT_SECONDS = 2.0
"""The parent kills a silent process some seconds later in any case."""


class BlockedProcess:
    def __init__(self, settings: WorkerSettings, counters: Counters) -> None:
        self._settings = settings
        self._counters = counters
        self.replace: Callable[[], None] | None = None
        """Called when all is given back, to have the process replaced; None: it cannot be."""
        self._is_tried = False

    @property
    def is_possible(self) -> bool:
        return self.replace is not None and not self._is_tried

    def give_back(self, item: WorkItem, failure: Failed, items: Iterable[WorkItem]) -> bool:
        """Fail the item whose handler blocks the loop, and release the others.

        Called on the thread that watches the loop. False: the server could not be reached, and the
        parent ends this process a few seconds later.
        """
        self._is_tried = True
        others = [each for each in list(items) if each is not item and not each.is_lost]
        settings = self._settings
        try:
            with connect(
                settings.address,
                connect_timeout=_CONNECT_SECONDS,
                retry_timeout=_CONNECT_SECONDS,
                token=settings.token,
                tls=settings.tls,
            ) as client:
                self._report(client, item, failure, others)
        except QueueberError:
            return False
        return True

    def _report(
        self, client: Client, item: WorkItem, failure: Failed, others: list[WorkItem]
    ) -> None:
        # Those that are innocent first: one that is left alone in a lost lease counts an attempt.
        by_lease: dict[tuple[str, bytes], list[bytes]] = {}
        for each in others:
            by_lease.setdefault((each.source, each.lease.id), []).append(each.id)
        for (source, lease), ids in by_lease.items():
            self._counters.released += sum(self._source(client, source).release(ids, lease=lease))
        queue = self._source(client, item.source)
        error, lease = [failure.error], item.lease.id
        (outcome,) = queue.fail([item.id], error, lease=lease, delay=failure.delay)
        if outcome is not FailOutcome.REFUSED:
            self._counters.failed += 1
            self._counters.timed_out += 1
            self._counters.died += outcome is FailOutcome.DIED

    def _source(self, client: Client, source: str) -> Any:
        if self._settings.topic is None:
            return client.queue(source, must_exist=True)
        return client.topic(self._settings.topic, must_exist=True).group(self._settings.group)
