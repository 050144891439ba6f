"""Queues: creating, configuring, pausing and deleting them, and what they hold."""

from collections.abc import Awaitable, Callable, Iterator

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.queue.pause import pause, resume
from queueber.engine.queue.queues import configure_queue, create_queue, delete_queue, queue_stats
from queueber.engine.queue.reclaim import reclaim_slices, reclaimed
from queueber.errors import InvalidArgument
from queueber.limits import QUEUES_MAX
from queueber.model import QueueSettings, Stats
from queueber.service.polls import Polls
from queueber.service.queue_handle import QueueHandle
from queueber.service.session import Session
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
            shell.run_on_engine(create_queue, DEFAULT_QUEUE, QueueSettings())

    def handle(self, name: str, session: Session) -> QueueHandle:
        """The queue as this caller holds it."""
        return QueueHandle(self._shell.engine.queue(name), session)

    def open_queue(
        self, name: str, session: Session, *, must_exist: bool
    ) -> Awaitable[QueueHandle]:
        """The queue, created with default settings when it is missing and may be."""
        check_queue_name(name)
        shell = self._shell
        if must_exist or name in shell.engine.queues:
            return _at_once(self.handle(name, session))
        shell.run_on_engine(create_queue, name, QueueSettings())
        shell.log(session, "queue_created", name, {})
        return shell.durable(self.handle(name, session))

    def create_queue(self, name: str, settings: QueueSettings, session: Session) -> Awaitable[bool]:
        check_queue_name(name)
        check_settings(settings, self._shell.limits.item_bytes_max)
        created = self._shell.run_on_engine(create_queue, name, settings)
        if created:
            self._shell.log(session, "queue_created", name, {"settings": settings})
        return self._shell.durable(created)

    def configure_queue(
        self, name: str, settings: QueueSettings, session: Session
    ) -> Awaitable[None]:
        check_settings(settings, self._shell.limits.item_bytes_max)
        return self._shell.write(
            self.handle(name, session),
            _configure,
            settings,
            event="queue_configured",
            facts=lambda _: {"settings": settings},
        )

    def delete_queue(self, name: str, session: Session) -> Awaitable[bool]:
        if name == DEFAULT_QUEUE:
            raise InvalidArgument(f"name: the queue {DEFAULT_QUEUE!r} cannot be deleted")
        shell = self._shell
        queue = shell.engine.queues.get(name)
        was_there = shell.run_on_engine(_delete, name)
        if queue is not None:
            self._polls.queue_deleted(queue)
            shell.wakeups.fire_all()  # those of this queue find that it is gone
            self._snapshots.queue_deleted(queue)
            shell.wake_reclaimer()
            shell.log(session, "queue_deleted", name, {})
        return shell.durable(was_there)

    def list_queues(self, after: str, limit: int) -> tuple[list[Stats], bool]:
        """Statistics of the queues after a name, and whether there are more."""
        queues = self._shell.engine.queues
        names = sorted(name for name in queues if name > after)
        limit = min(limit, QUEUES_MAX) or QUEUES_MAX
        return [self._stats(queues[name]) for name in names[:limit]], len(names) > limit

    def stats(self, queue: QueueHandle) -> Stats:
        queue.check_alive()
        return self._stats(queue.state)

    def _stats(self, queue: QueueState) -> Stats:
        shell, waiting = self._shell, self._polls.waiting(queue)
        return queue_stats(shell.engine, queue, waiting_polls=waiting, now_ms=shell.clock.now_ms())

    # --- pausing ----------------------------------------------------------------------------------

    def pause(self, queue: QueueHandle, for_ms: int) -> Awaitable[None]:
        """Serve no poll for that long; 0: until resumed."""
        check_pause_ms(for_ms)
        return self._shell.write(
            queue, _pause, for_ms, event="paused", facts=lambda _: {"for_ms": for_ms}
        )

    def resume(self, queue: QueueHandle) -> Awaitable[None]:
        return self._shell.write(queue, _resume, event="resumed", facts=lambda _: {})

    # --- disk space of queues that were deleted ---------------------------------------------------

    def next_reclaim(self) -> bytes | None:
        """A deleted queue whose disk space is to be freed."""
        reclaims = self._shell.engine.reclaims
        return reclaims[0] if reclaims else None

    def reclaim_slices(self, prefix: bytes) -> Iterator[Callable[[], None]]:
        """What is to be done for it; each slice may run in a thread of its own."""
        return reclaim_slices(self._shell.engine, prefix)

    def reclaimed(self, prefix: bytes) -> None:
        reclaimed(self._shell.engine, prefix)


async def _at_once(handle: QueueHandle) -> QueueHandle:
    return handle


def _configure(engine: Engine, queue: QueueState, settings: QueueSettings, now_ms: int) -> None:
    configure_queue(engine, queue.name, settings, now_ms)


def _delete(engine: Engine, name: str, _: int) -> bool:
    return delete_queue(engine, name)


def _pause(engine: Engine, queue: QueueState, for_ms: int, now_ms: int) -> None:
    pause(engine, queue, now_ms + for_ms if for_ms else NEVER_MS)


def _resume(engine: Engine, queue: QueueState, _: int) -> None:
    resume(engine, queue)
