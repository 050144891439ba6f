"""What the engine holds in memory: for each queue its counters and windows, and the agenda.

All of it is rebuilt from the store in `read_engine`, reading a few records a queue and no items.
"""

from dataclasses import dataclass
from itertools import islice

from queueber.db.families import Family
from queueber.db.records.counters import Counters, decode_counters
from queueber.db.records.keys import (
    DIGEST_BYTES,
    NEVER_MS,
    level_part,
    queue_prefix,
    split_queue_prefix,
)
from queueber.db.records.loads import LoadRecord, decode_load, is_load_key, loads_end
from queueber.db.records.queues import decode_queue
from queueber.db.store.contract import Store
from queueber.engine.kernel.agenda import Agenda
from queueber.engine.log.log import Log, open_log
from queueber.engine.log.trim import trim_due_ms
from queueber.engine.queue.ready_window import Entry, ReadyWindow
from queueber.engine.queue.recent_contents import FreshContents
from queueber.errors import NotFound, StorageCorrupt
from queueber.ids import IdSource
from queueber.limits import ID_BYTES
from queueber.model import QueueSettings

NEXT_QUEUE_KEY = b"next_queue"
LAST_ID_KEY = b"last_id"
RECLAIM_KEY = b"reclaim"
HIGHEST_PREFIX = b"\xff" * 4


class QueueState:
    """One queue. `counters` are as last written; only `Change.commit` replaces them."""

    __slots__ = (
        "batch_names", "committing", "counters", "created_at_ms", "dead_low", "finished_batches",
        "is_deleted", "keys_are_frozen", "loads", "name", "paused_until_ms", "prefix", "queue_id",
        "results", "settings", "windows",
    )  # fmt: skip

    def __init__(
        self,
        queue_id: int,
        name: str,
        settings: QueueSettings,
        *,
        created_at_ms: int,
        counters: Counters,
        results: Log,
        paused_until_ms: int = 0,
        loads: dict[bytes, LoadRecord] | None = None,
    ) -> None:
        self.queue_id = queue_id
        self.prefix = queue_prefix(queue_id)
        self.name = name
        self.settings = settings
        self.created_at_ms = created_at_ms
        self.counters = counters
        self.results = results
        self.paused_until_ms = paused_until_ms
        self.windows = {level: ReadyWindow(is_complete=False) for level in counters.levels}
        self.finished_batches: set[str] = set()
        """Batches that came to have no live item; whoever tells those who wait empties it."""
        self.batch_names: dict[int, str] = {}
        """By number, of batches lately seen."""
        self.dead_low = b""
        """No dead letter has a lower id: where a walk over them begins."""
        self.loads = loads or {}
        """Those under way, by the digest of their name."""
        self.committing = b""
        """The one of them that is being committed now, by a generator of steps."""
        self.keys_are_frozen = False
        """A load with keys is being committed: nobody else may add a key."""
        self.is_deleted = False

    def first_ready(self, store: Store, level: int, count: int) -> list[Entry]:
        """The first entries of a level that has some, from its window."""
        window = self.windows[level]
        window.fill(store, self.prefix + level_part(level), self.counters.levels[level][1], count)
        return list(islice(window.entries, count))

    def is_paused(self, now_ms: int) -> bool:
        return self.paused_until_ms > now_ms

    def results_due_ms(self, now_ms: int) -> int:
        """When some results are to be deleted next."""
        return trim_due_ms(
            self.results,
            now_ms=now_ms,
            age_ms=self.settings.result_age_ms,
            bytes_max=self.settings.result_bytes_max,
        )


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
    reclaims: list[bytes]
    """The prefixes of deleted queues whose room on disk is still to be given back."""
    stale_stages: list[str]
    """The directories of loads that have ended: their files may go."""
    fresh: FreshContents

    def shrink_windows(self, queue_id: int) -> None:
        for window in self.by_id[queue_id].windows.values():
            window.shrink()

    def queue(self, name: str) -> QueueState:
        found = self.queues.get(name)
        if found is None:
            raise NotFound(f"there is no queue {name!r}; create it, or check the name")
        return found


def read_engine(store: Store, ids: IdSource) -> Engine:
    agenda = Agenda()
    queues: dict[str, QueueState] = {}
    by_id: dict[int, QueueState] = {}
    for prefix, record in store.walk(Family.QUEUES, b"", HIGHEST_PREFIX):
        queue = _open_queue(store, prefix, record)
        queues[queue.name] = by_id[queue.queue_id] = queue
        counters = queue.counters
        due_ms = min(
            counters.lease_due_ms,
            counters.delayed_due_ms,
            counters.forget_due_ms,
            queue.paused_until_ms or NEVER_MS,
            queue.results_due_ms(queue.results.head.last_ms),
        )
        if due_ms < NEVER_MS:
            agenda.schedule(queue.queue_id, due_ms)
        ids.continue_after(counters.last_id)
    next_queue_id = int.from_bytes(store.get(Family.DEFAULT, NEXT_QUEUE_KEY) or b"\1")
    retired_last_id = store.get(Family.DEFAULT, LAST_ID_KEY) or bytes(ID_BYTES)
    ids.continue_after(retired_last_id)
    reclaims = [
        key[len(RECLAIM_KEY) :]
        for key, _ in store.walk(Family.DEFAULT, RECLAIM_KEY, RECLAIM_KEY + HIGHEST_PREFIX)
    ]
    return Engine(
        store,
        ids,
        agenda,
        queues,
        by_id,
        next_queue_id,
        retired_last_id,
        reclaims,
        stale_stages=[],
        fresh=FreshContents(),
    )


def _open_queue(store: Store, prefix: bytes, record: bytes) -> QueueState:
    number = split_queue_prefix(prefix)
    try:
        name, created_at_ms, settings, paused_until_ms = decode_queue(record)
        counters = decode_counters(store.get(Family.COUNTERS, prefix) or b"")
        results = open_log(store, prefix)
        loads = {
            key[-DIGEST_BYTES:]: decode_load(value)
            for key, value in store.walk(Family.LOADS, prefix, prefix + loads_end())
            if is_load_key(key[len(prefix) :])
        }
    except Exception as error:
        raise StorageCorrupt(
            f"the records of queue number {number} cannot be read; run 'queueber verify', and "
            "restore the store from a backup"
        ) from error
    return QueueState(
        number,
        name,
        settings,
        created_at_ms=created_at_ms,
        counters=counters,
        results=results,
        paused_until_ms=paused_until_ms,
        loads=loads,
    )
