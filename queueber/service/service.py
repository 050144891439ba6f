"""The service: the engine's verbs for many callers at once, and the queues themselves."""

from collections.abc import Awaitable, Callable, Iterator

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.state import QueueState
from queueber.engine.queue.queues import configure_queue, create_queue, delete_queue, queue_stats
from queueber.engine.queue.reclaim import reclaim_slices, reclaimed
from queueber.engine.queue.sweep import sweep
from queueber.errors import InvalidArgument
from queueber.limits import QUEUES_MAX
from queueber.model import NOTHING_POLLED, QueueSettings, Stats
from queueber.service.core import DEFAULT_QUEUE, ServiceLimits, deleted
from queueber.service.items import Items
from queueber.service.loading import Loading
from queueber.service.operating import Operating
from queueber.service.reading import Reading
from queueber.service.snapshots import Snapshots
from queueber.service.validate.arguments import check_queue_name
from queueber.service.validate.settings import check_settings

__all__ = ["DEFAULT_QUEUE", "Service", "ServiceLimits"]

_log = structlog.get_logger("queueber.service")


class Service(Items, Operating, Reading, Loading, Snapshots):
    # --- queues -----------------------------------------------------------------------------------

    def queue(self, name: str, *, must_exist: bool) -> Awaitable[QueueState]:
        """The queue, created with default settings when it is missing and may be."""
        check_queue_name(name)
        if not must_exist and name not in self._engine.queues:
            create_queue(self._engine, name, QueueSettings(), self._clock.now_ms())
            _log.info("queue_created", queue=name)
            return self._durable(self._engine.queue(name))
        return self._at_once(self._engine.queue(name))

    def create_queue(self, name: str, settings: QueueSettings) -> Awaitable[bool]:
        check_queue_name(name)
        check_settings(settings, self.limits.item_bytes_max)
        created = create_queue(self._engine, name, settings, self._clock.now_ms())
        if created:
            _log.info("queue_created", queue=name, settings=settings)
        return self._durable(created)

    def configure_queue(self, name: str, settings: QueueSettings) -> Awaitable[None]:
        check_settings(settings, self.limits.item_bytes_max)
        configure_queue(self._engine, name, settings, self._clock.now_ms())
        _log.info("queue_configured", queue=name, settings=settings)
        self._tell_sweeper()
        return self._durable(None)

    def delete_queue(self, name: str) -> Awaitable[bool]:
        if name == DEFAULT_QUEUE:
            raise InvalidArgument(f"name: the queue {DEFAULT_QUEUE!r} is always there")
        queue = self._engine.queues.get(name)
        was_there = delete_queue(self._engine, name)
        if queue is not None:
            for waiter in self._waiters.take_queue(queue.queue_id):
                waiter.fail(deleted(queue))
            self._signals.fire_all()  # those of this queue find that it is gone
            self._end_snapshots(queue)
            self._wake_reclaimer()
            _log.info("queue_deleted", queue=name)
        return self._durable(was_there)

    def list_queues(self, after: str, limit: int) -> tuple[list[Stats], bool]:
        """Statistics of the queues after a name, and whether there are more."""
        names = sorted(name for name in self._engine.queues if name > after)
        limit = min(limit, QUEUES_MAX) or QUEUES_MAX
        shown = [self.stats(self._engine.queues[name]) for name in names[:limit]]
        return shown, len(names) > limit

    def stats(self, queue: QueueState) -> Stats:
        self._check_alive(queue)
        waiting = self._waiters.count(queue.queue_id)
        return queue_stats(self._engine, queue, waiting_polls=waiting, now_ms=self._clock.now_ms())

    def next_reclaim(self) -> bytes | None:
        """A deleted queue whose room on disk is to be given back."""
        return self._engine.reclaims[0] if self._engine.reclaims else None

    def reclaim_slices(self, prefix: bytes) -> Iterator[Callable[[], None]]:
        """What is to be done for it; each slice may run in a thread of its own."""
        return reclaim_slices(self._engine, prefix)

    def reclaimed(self, prefix: bytes) -> None:
        reclaimed(self._engine, prefix)

    # --- time and shutdown ------------------------------------------------------------------------

    def sweep(self) -> bool:
        """Do one slice of what is due; False when nothing was."""
        if self._endings and self._clock.now_ms() >= self._endings_retry_at_ms:
            self._end_some()
            return True
        swept = sweep(self._engine, self._clock.now_ms())
        if swept is not None:
            self._swept(swept)
        return swept is not None

    def next_due_in_ms(self) -> int | None:
        """How long nothing will be due; None when nothing ever will, as things stand."""
        due_ms = self._engine.agenda.next_ms()
        if self._endings:
            due_ms = min(due_ms, self._endings_retry_at_ms)
        self._sweeper_wakes_at_ms = due_ms
        return None if due_ms == NEVER_MS else max(0, due_ms - self._clock.now_ms())

    async def drain(self) -> None:
        """Let no call in any more, answer those that wait, and wait until no call is left."""
        self.gate.close()
        for waiter in self._waiters.take_all():
            waiter.answer(NOTHING_POLLED)
        self._signals.fire_all()
        # Those that were just answered count as calls again after their next turn.
        await self._turn()
        await self.gate.wait_idle()
        self._end_snapshots()
