"""Queues: creating, configuring, pausing and deleting them, and what they hold."""

from collections.abc import Awaitable, Callable, Iterator

from queueber.engine.queue.pause import pause, resume
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import configure, queue_stats, reclaim_slices
from queueber.errors import InvalidArgument
from queueber.limits import QUEUES_MAX
from queueber.model import QueueSettings, Stats
from queueber.service.polls import Polls
from queueber.service.rights import (
    audit_creation,
    check_any_right,
    check_may_create,
    sees,
)
from queueber.service.session import QueueHandle, Session
from queueber.service.shell import Shell
from queueber.service.snapshots import Snapshots
from queueber.service.validate.arguments import check_queue_name
from queueber.service.validate.items import check_pause_ms
from queueber.service.validate.settings import check_settings

DEFAULT_QUEUE = "default"


class Queues:
    def __init__(self, shell: Shell, polls: Polls, snapshots: Snapshots) -> None:
        self._shell = shell
        self._polls = polls
        self._snapshots = snapshots
        if DEFAULT_QUEUE not in shell.engine.queues:
            shell.run(None, shell.engine.queues.create, DEFAULT_QUEUE, QueueSettings())

    def handle(self, name: str, session: Session) -> QueueHandle:
        """The queue as this caller holds it."""
        return QueueHandle(self._shell.engine.queues.get(name), session)

    def open_queue(
        self, name: str, session: Session, *, must_exist: bool
    ) -> Awaitable[QueueHandle]:
        """The queue, created with default settings when it is missing and may be."""
        check_queue_name(name)
        check_any_right(session, "queue", name)
        shell = self._shell
        if must_exist or name in shell.engine.queues:
            return _at_once(self.handle(name, session))
        self.create_missing(name, session)
        return shell.durable(self.handle(name, session))

    def create_missing(self, name: str, session: Session) -> None:
        """Create a queue that a call about something else needs; the caller waits for the disk."""
        check_may_create(session, "queue", name, self._count)
        shell = self._shell
        shell.run(None, shell.engine.queues.create, name, QueueSettings())
        shell.log(session, "queue_created", name, {})
        audit_creation(session, "queue", name)

    def create_queue(self, name: str, settings: QueueSettings, session: Session) -> Awaitable[bool]:
        check_queue_name(name)
        check_settings(settings, self._shell.limits.item_bytes_max)
        shell = self._shell
        if name not in shell.engine.queues:
            check_may_create(session, "queue", name, self._count)
        created = shell.run(None, shell.engine.queues.create, name, settings)
        if created:
            shell.log(session, "queue_created", name, {"settings": settings})
        return shell.durable(created)

    def configure_queue(
        self, name: str, settings: QueueSettings, session: Session
    ) -> Awaitable[None]:
        check_settings(settings, self._shell.limits.item_bytes_max)
        return self._shell.write(
            self.handle(name, session),
            configure,
            settings,
            event="queue_configured",
            facts=lambda _: {"settings": settings},
        )

    def delete_queue(self, name: str, session: Session) -> Awaitable[bool]:
        if name == DEFAULT_QUEUE:
            raise InvalidArgument(f"name: the queue {DEFAULT_QUEUE!r} cannot be deleted")
        shell = self._shell
        queues = shell.engine.queues
        queue = queues.by_name.get(name)
        if queue is not None:
            shell.write_gathered(queue)  # those calls came before
        was_there = shell.run(None, queues.delete, name)
        if queue is not None:
            self._polls.queue_deleted(queue)
            shell.serve_waiting_polls(queue)  # subscribers to its results
            shell.wakeups.fire_all()  # those of this queue find that it is gone
            self._snapshots.queue_deleted(queue)
            shell.wake_reclaimer()
            shell.log(session, "queue_deleted", name, {})
        return shell.durable(was_there)

    def _count(self, prefix: str, limit: int) -> int:
        return sum(name.startswith(prefix) for name in self._shell.engine.queues.by_name)

    def list_queues(self, after: str, limit: int, session: Session) -> tuple[list[Stats], bool]:
        """Statistics of the queues after a name, and whether there are more."""
        queues = self._shell.engine.queues.by_name
        is_seen = sees(session, "queue")
        names = sorted(n for n in queues if n > after and (is_seen is None or is_seen(n)))
        limit = min(limit, QUEUES_MAX) or QUEUES_MAX
        return [self._stats(queues[name]) for name in names[:limit]], len(names) > limit

    def stats(self, queue: QueueHandle) -> Stats:
        queue.check_alive()
        return self._stats(queue.state)

    def _stats(self, queue: QueueState) -> Stats:
        waiting, now_ms = self._polls.waiting(queue), self._shell.clock.now_ms()
        return queue_stats(queue, waiting_polls=waiting, now_ms=now_ms)

    # --- pausing ----------------------------------------------------------------------------------

    def pause(self, queue: QueueHandle, for_ms: int) -> Awaitable[None]:
        """Serve no poll for that long; 0: until resumed."""
        check_pause_ms(for_ms)
        return self._shell.write(
            queue, pause, for_ms, event="paused", facts=lambda _: {"for_ms": for_ms}
        )

    def resume(self, queue: QueueHandle) -> Awaitable[None]:
        return self._shell.write(queue, resume, event="resumed", facts=lambda _: {})

    # --- disk space of queues that were deleted ---------------------------------------------------

    def next_reclaim(self) -> bytes | None:
        """A deleted queue whose disk space is to be freed."""
        reclaims = self._shell.engine.queues.reclaims
        return reclaims[0] if reclaims else None

    def reclaim_slices(self, prefix: bytes) -> Iterator[Callable[[], None]]:
        """What is to be done for it; each slice may run in a thread of its own."""
        return reclaim_slices(self._shell.engine.store, prefix)

    def reclaimed(self, prefix: bytes) -> None:
        self._shell.run(None, self._shell.engine.queues.reclaimed, prefix)


async def _at_once(handle: QueueHandle) -> QueueHandle:
    return handle
