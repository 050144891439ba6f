"""What the engine holds in memory: for each queue its counters and a window, and the agenda.

All of it is rebuilt from the store in `open_engine`, reading two records a queue and no items.
"""

from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.keys import queue_prefix, split_queue_prefix
from queueber.db.records import Counters, decode_counters, decode_queue, encode_counters
from queueber.db.store import Batch, Store
from queueber.engine.agenda import Agenda
from queueber.engine.ready_window import ReadyWindow
from queueber.errors import NotFound, StorageCorrupt
from queueber.ids import IdSource
from queueber.limits import ID_BYTES
from queueber.model import QueueSettings

NEXT_QUEUE_KEY = b"next_queue"
LAST_ID_KEY = b"last_id"
HIGHEST_PREFIX = b"\xff" * 4


class QueueState:
    """One queue. `counters` are as last written; only `Change.commit` replaces them."""

    __slots__ = (
        "counters", "created_at_ms", "is_deleted", "name", "prefix", "queue_id", "settings",
        "window",
    )  # fmt: skip

    def __init__(
        self,
        queue_id: int,
        name: str,
        settings: QueueSettings,
        *,
        created_at_ms: int,
        counters: Counters,
    ) -> None:
        self.queue_id = queue_id
        self.prefix = queue_prefix(queue_id)
        self.name = name
        self.settings = settings
        self.created_at_ms = created_at_ms
        self.counters = counters
        self.window = ReadyWindow(is_complete=counters.ready == 0)
        self.is_deleted = False


@dataclass(slots=True)
class Engine:
    """The state that operations work on."""

    store: Store
    ids: IdSource
    agenda: Agenda
    queues: dict[str, QueueState]
    by_id: dict[int, QueueState]
    next_queue_id: int
    retired_last_id: bytes
    """The newest id of any queue that was deleted: ids go on rising after it."""

    def queue(self, name: str) -> QueueState:
        found = self.queues.get(name)
        if found is None:
            raise NotFound(f"there is no queue {name!r}; create it, or check the name")
        return found

    def change(self, queue: QueueState) -> "Change":
        return Change(self.store, queue)


class Change:
    """One atomic step of one queue: a batch, and the counters as they will be once it is
    written."""

    __slots__ = ("_queue", "_store", "batch", "counters")

    def __init__(self, store: Store, queue: QueueState) -> None:
        self._store = store
        self._queue = queue
        self.batch: Batch = store.batch()
        self.counters = queue.counters.copy()

    def commit(self) -> None:
        """Write it. When the store refuses, nothing has changed, in memory neither."""
        self.batch.put(Family.COUNTERS, self._queue.prefix, encode_counters(self.counters))
        self._store.write(self.batch)
        self._queue.counters = self.counters


def open_engine(store: Store, ids: IdSource) -> Engine:
    agenda = Agenda()
    queues: dict[str, QueueState] = {}
    by_id: dict[int, QueueState] = {}
    for prefix, record in store.walk(Family.QUEUES, b"", HIGHEST_PREFIX):
        try:
            name, created_at_ms, settings = decode_queue(record)
            counters = decode_counters(store.get(Family.COUNTERS, prefix) or b"")
        except Exception as error:
            number = split_queue_prefix(prefix)
            raise StorageCorrupt(
                f"the records of queue number {number} cannot be read; run 'queueber verify', and "
                "restore the store from a backup"
            ) from error
        queue = QueueState(
            split_queue_prefix(prefix),
            name,
            settings,
            created_at_ms=created_at_ms,
            counters=counters,
        )
        queues[name] = by_id[queue.queue_id] = queue
        agenda.schedule(queue.queue_id, min(counters.lease_due_ms, counters.delayed_due_ms))
        ids.continue_after(counters.last_id)
    next_queue_id = int.from_bytes(store.get(Family.DEFAULT, NEXT_QUEUE_KEY) or b"\1")
    retired_last_id = store.get(Family.DEFAULT, LAST_ID_KEY) or bytes(ID_BYTES)
    ids.continue_after(retired_last_id)
    return Engine(store, ids, agenda, queues, by_id, next_queue_id, retired_last_id)
