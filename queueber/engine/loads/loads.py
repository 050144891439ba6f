"""Loads under way: their records, their phases, and the directories of those that have ended.

Name and epoch identify a load. The operations on loads are in `staging.py` and `commit.py`. A load
is in one phase; this and `TRANSITIONS` say which events are legal:

    STAGING ── prepare ──▶ PREPARING ── intend ──▶ FINISHING ── conclude ──▶ ENDED
       │  ◀── give up ──────────┘                   │     ▲
       │                                  interrupt ▼     │ resume
       └── drop ──▶ ENDED                          INTENDED

The store records only whether the intent is written (FINISHING and INTENDED): such a load will be
committed, by this server or by the next one that opens the store. While any load of a queue is past
STAGING, the queue forgets no records, and no other load of it is committed.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from queueber.db.families import Family
from queueber.db.records import loads as codec
from queueber.db.records.keys import DIGEST_BYTES
from queueber.db.records.loads import LoadedRecord, LoadRecord
from queueber.db.records.remembered import FORGET_LOAD, FORGET_LOADED
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.queue_state import QueueState, QueueTx, unreadable_queue
from queueber.errors import Aborted, NotFound, invariant
from queueber.ids import QueueId
from queueber.model import LoadRef, PartRef


class LoadPhase(Enum):
    STAGING = "callers stage its parts"
    PREPARING = "the server checks parts and searches duplicates; nothing has changed"
    INTENDED = "it will be committed, but no call works on it now"
    FINISHING = "the server takes in its files"
    ENDED = "it is committed or dropped"


TRANSITIONS: dict[tuple[LoadPhase, str], LoadPhase] = {
    (LoadPhase.STAGING, "prepare"): LoadPhase.PREPARING,
    (LoadPhase.STAGING, "drop"): LoadPhase.ENDED,
    (LoadPhase.PREPARING, "give up"): LoadPhase.STAGING,
    (LoadPhase.PREPARING, "intend"): LoadPhase.FINISHING,
    (LoadPhase.INTENDED, "resume"): LoadPhase.FINISHING,
    (LoadPhase.FINISHING, "interrupt"): LoadPhase.INTENDED,
    (LoadPhase.FINISHING, "conclude"): LoadPhase.ENDED,
}
"""A pair that is not in this table is a bug of the server."""


def next_phase(phase: LoadPhase, event: str) -> LoadPhase:
    found = TRANSITIONS.get((phase, event))
    invariant(found is not None, "I13", phase=phase.name, event=event)
    return found or phase


class Load:
    """One load that is under way, as it was last written."""

    __slots__ = ("phase", "record")

    def __init__(self, record: LoadRecord) -> None:
        self.record = record
        self.phase = LoadPhase.INTENDED if record.is_committing else LoadPhase.STAGING

    @property
    def is_intended(self) -> bool:
        """Whether the intent is written: the load will be committed."""
        return self.phase in (LoadPhase.INTENDED, LoadPhase.FINISHING)


class Loads:
    """The loads of one queue that are under way, and the records of committed ones."""

    def __init__(self, store: Store, queue: QueueState, stale: list[str]) -> None:
        self._store = store
        self._prefix = queue.prefix
        self._stale = stale
        self.queue = queue
        self._loads: dict[bytes, Load] = {}
        for key, value in store.walk(Family.LOADS, self._prefix, self._prefix + codec.LOADS_END):
            if codec.is_load_key(key[len(self._prefix) :]):
                self._loads[key[-DIGEST_BYTES:]] = Load(codec.decode_load(value))
        self._follow_phases()
        queue.retention.register(FORGET_LOAD, self._look_at)
        queue.retention.register(FORGET_LOADED, _forget_loaded)

    def __iter__(self) -> Iterator[Load]:
        return iter(self._loads.values())

    def __len__(self) -> int:
        return len(self._loads)

    # --- finding ----------------------------------------------------------------------------------

    def find(self, ref: LoadRef) -> Load | None:
        """The load of that name and epoch, if it is under way."""
        load = self.of_name(ref.name)
        return load if load is not None and load.record.ref.epoch == ref.epoch else None

    def of_name(self, name: str) -> Load | None:
        """The load of that name that is under way, in any epoch."""
        return self._loads.get(codec.load_digest(name))

    def staging(self, ref: LoadRef) -> Load:
        """The load, if parts may be added to it; raises if not."""
        load = self.find(ref)
        if load is None:
            raise self.not_under_way(ref)
        if load.phase is not LoadPhase.STAGING:
            raise Aborted(f"load: {ref.name!r} is being committed; nothing is added to it any more")
        return load

    def not_under_way(self, ref: LoadRef) -> NotFound:
        return NotFound(
            f"load: {ref.name!r} is not under way in queue {self.queue.name!r}; it was committed, "
            "aborted, or dropped because nobody called in time"
        )

    def committed(self, ref: LoadRef) -> LoadedRecord | None:
        """The record of the load, or of a later epoch of its name, if that was committed."""
        key = self._prefix + codec.loaded_key(codec.loaded_digest(ref.name))
        stored = self._store.get(Family.LOADS, key)
        if stored is None:
            return None
        loaded = codec.decode_loaded(stored)
        return loaded if loaded.ref.epoch >= ref.epoch else None

    def is_finished(self, ref: LoadRef, part: PartRef) -> bool:
        """Whether the part was finished: its files must stay as they are."""
        key = self._prefix + codec.part_key(codec.load_digest(ref.name), part)
        return self._store.get(Family.LOADS, key) is not None

    @property
    def is_commit_under_way(self) -> bool:
        """Whether a commit of any load has begun and has not ended."""
        return any(load.phase is not LoadPhase.STAGING for load in self._loads.values())

    # --- phases -----------------------------------------------------------------------------------

    def move(self, load: Load, event: str) -> None:
        load.phase = next_phase(load.phase, event)
        self._follow_phases()

    def _follow_phases(self) -> None:
        # The keys that a commit has read must stay until it ends.
        self.queue.retention.is_on_hold = self.is_commit_under_way
        if not self.is_commit_under_way:
            self.queue.keys.is_frozen = False

    # --- writing ----------------------------------------------------------------------------------

    def put(self, tx: QueueTx, record: LoadRecord) -> None:
        """Write the record of a load that begins or changes."""
        digest = codec.load_digest(record.ref.name)
        tx.batch.put(Family.LOADS, self._prefix + codec.load_key(digest), codec.encode_load(record))
        if (self, digest) not in tx.pending:
            tx.after_write(self._take_record, digest, tx.pending)
        tx.pending[self, digest] = record

    def record_in(self, tx: QueueTx, load: Load) -> LoadRecord:
        """The record, with the changes of this transaction so far."""
        digest = codec.load_digest(load.record.ref.name)
        record: LoadRecord = tx.pending.get((self, digest), load.record)
        return record

    def end(self, tx: QueueTx, load: Load, event: str) -> None:
        """End a load: delete its record and those of its parts."""
        digest = codec.load_digest(load.record.ref.name)
        start, stop = self._prefix + codec.load_key(digest), self._prefix + codec.parts_end(digest)
        tx.batch.delete_range(Family.LOADS, start, stop)
        tx.after_write(self._ended, digest, load, event)

    def remember(self, tx: QueueTx, loaded: LoadedRecord) -> None:
        """Write the record of a committed load, which is kept for a while."""
        retention, digest = self.queue.retention, codec.loaded_digest(loaded.ref.name)
        earlier = self.committed(LoadRef(loaded.ref.name))
        if earlier is not None:
            retention.cancel(tx, earlier.forget_at_ms, digest)
        key = self._prefix + codec.loaded_key(digest)
        tx.batch.put(Family.LOADS, key, codec.encode_loaded(loaded))
        retention.remember(tx, loaded.forget_at_ms, digest, FORGET_LOADED)

    def drop(self, tx: QueueTx, load: Load) -> None:
        """Drop all that was staged. The caller deletes the entry in `forget`."""
        if load.record.batch:
            self.queue.batches.let_go(tx, load.record.batch)
        self.end(tx, load, "drop")

    def _take_record(self, digest: bytes, pending: dict[object, LoadRecord]) -> None:
        record = pending[self, digest]
        load = self._loads.get(digest)
        if load is None:
            self._loads[digest] = Load(record)
        else:
            load.record = record

    def _ended(self, digest: bytes, load: Load, event: str) -> None:
        del self._loads[digest]
        self._stale.append(load.record.directory)
        self.move(load, event)

    def _look_at(self, tx: QueueTx, at_ms: int, digest: bytes) -> None:
        load = self._loads[digest]
        record = load.record
        keep_until_ms = record.seen_at_ms + record.timeout_ms
        if keep_until_ms > tx.now_ms:
            self.put(tx, record.at(forget_at_ms=keep_until_ms))
            self.queue.retention.remember(tx, keep_until_ms, digest, FORGET_LOAD)
        else:
            self.drop(tx, load)


class AllLoads:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues: dict[QueueId, Loads] = {}
        self.stale_directories: list[str] = []
        """Directories of loads that have ended: their files may be deleted."""

    def of(self, queue: QueueState) -> Loads:
        return self._queues[queue.queue_id]

    def __iter__(self) -> Iterator[Loads]:
        return iter(self._queues.values())

    def queue_opened(self, queue: QueueState) -> None:
        try:
            loads = Loads(self._store, queue, self.stale_directories)
        except Exception as error:
            raise unreadable_queue(queue.queue_id) from error
        self._queues[queue.queue_id] = loads

    def queue_deleted(self, queue: QueueState) -> None:
        for load in self._queues.pop(queue.queue_id):
            self.stale_directories.append(load.record.directory)


def _forget_loaded(tx: Transaction[Any], at_ms: int, digest: bytes) -> None:
    tx.batch.delete(Family.LOADS, tx.prefix + codec.loaded_key(digest))
