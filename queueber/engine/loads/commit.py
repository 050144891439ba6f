"""Commit a load: its parts become items of the queue, all at once.

    check the parts ─▶ find duplicates ─▶ record the intent ─▶ take in the files ─▶ conclude
                                          (and sync it)        items first

RocksDB takes in files one family at a time. Before the intent nothing has changed. From then on
this server finishes the load, or the next one that opens the store: it skips files that were taken
in already. The files that make items visible and the last batch come in one step, so that no call
sees a part of them.
"""

from collections.abc import Sequence
from pathlib import Path

from queueber.db.bulk.staged_files import CLAIMS
from queueber.db.families import Family
from queueber.db.records import loads as codec
from queueber.db.records.keys import due_part
from queueber.db.records.loads import Dropped, LoadedRecord, LoadRecord
from queueber.db.records.remembered import ids_digest
from queueber.db.records.runs import Run
from queueber.engine.kernel.transaction import Kernel, Step, Steps, Transaction
from queueber.engine.loads.duplicates import DuplicateSearch
from queueber.engine.loads.loads import AllLoads, Load, LoadPhase, Loads
from queueber.engine.loads.staging import touch_load
from queueber.engine.queue.add import check_quota
from queueber.engine.queue.cancel import take_waiting
from queueber.engine.queue.places import count_delayed
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.errors import Aborted, InvalidArgument, NotFound, Unavailable
from queueber.ids import PARTITION_BYTES, ROW_BYTES
from queueber.limits import LOAD_KEEP_MS, LOAD_PARTS_MAX, SWEEP_SLICE_ITEMS
from queueber.model import LoadRef, Part, PartRef

_UNSEEN = (Family.ITEMS, Family.PLACES)
"""No call reads these while no entry of another family names the item."""
_SEEN = (Family.KEYS, Family.FORGET, Family.DELAYED, Family.VISIBILITY_INDEX)

_CHECKED_AT_ONCE = 100
"""Parts of which one step checks the files: about a millisecond."""


def commit_load(
    kernel: Kernel, loads: Loads, ref: LoadRef, refs: Sequence[PartRef], now_ms: int
) -> Steps[LoadedRecord]:
    """Commit these parts, a step at a time; returns the record of the committed load.

    If it ends before the intent is written, by an error or by its caller, nothing has changed.
    """
    _check_alive(loads.queue)
    if (loaded := _look(loads, ref)) is not None:
        return loaded
    load = loads.find(ref)
    if load is None or not load.is_intended:
        tx = Transaction(kernel, now_ms, loads.queue)
        touch_load(tx, loads, ref)
        tx.commit()
        yield from _forget_what_is_due(kernel, loads.queue, now_ms)
        # Other calls were answered meanwhile.
        if (loaded := _look(loads, ref)) is not None:
            return loaded
        load = loads.staging(ref)
    commit = _Commit(kernel, loads, load)
    if load.phase is LoadPhase.STAGING:
        yield from commit.prepare(refs, now_ms)
    else:
        # The store failed during an earlier commit: go on where that stopped.
        loads.move(load, "resume")
    return (yield from commit.finish())


def finish_commits(kernel: Kernel, all_loads: AllLoads) -> None:
    """Finish the commits that a crash interrupted."""
    for loads in all_loads:
        for load in [each for each in loads if each.is_intended]:
            loads.move(load, "resume")
            for _ in _Commit(kernel, loads, load).finish():
                pass
            kernel.store.sync()


def _look(loads: Loads, ref: LoadRef) -> LoadedRecord | None:
    """The record of the load if it is committed; raises if it cannot be committed now."""
    if (loaded := loads.committed(ref)) is not None:
        return loaded
    load = loads.find(ref)
    if load is not None and load.phase is LoadPhase.INTENDED:
        return None
    if load is not None and load.phase is not LoadPhase.STAGING:
        raise Aborted(f"load: {ref.name!r} is being committed")
    loads.staging(ref)
    if loads.is_commit_under_way:
        # One at a time: a search for duplicates does not see the keys of another load.
        raise Unavailable(
            f"another load is being committed in queue {loads.queue.name!r}; send the call again "
            "in a moment"
        )
    return None


def _forget_what_is_due(kernel: Kernel, queue: QueueState, now_ms: int) -> Steps[None]:
    """Delete keys whose window is over: the load may add them anew, and those must stay.

    Done while the load is still staging, because this may have to write the load's own record.
    """
    while queue.counters.forget_due_ms <= now_ms:
        tx = Transaction(kernel, now_ms, queue)
        looked_at = queue.retention.forget(tx, SWEEP_SLICE_ITEMS).moved
        tx.commit()
        if not looked_at:
            return
        yield Step.TURN
        _check_alive(queue)


def _check_alive(queue: QueueState) -> None:
    if queue.is_deleted:
        raise NotFound(f"queue {queue.name!r} was deleted while the load was committed")


class _Commit:
    """One commit, from the check of the parts to its last batch."""

    def __init__(self, kernel: Kernel, loads: Loads, load: Load) -> None:
        self._kernel = kernel
        self._store = kernel.store
        self._loads = loads
        self._queue = loads.queue
        self._load = load
        self._directory = kernel.store.loads_path / load.record.directory

    # --- before the intent ------------------------------------------------------------------------

    def prepare(self, refs: Sequence[PartRef], now_ms: int) -> Steps[None]:
        """Check the parts, find duplicates, and record what will be committed."""
        self._loads.move(self._load, "prepare")
        try:
            yield from self._record_intent(refs, now_ms)
        except BaseException:
            if not self._queue.is_deleted:
                self._loads.move(self._load, "give up")
                self._look_again()
            raise
        self._loads.move(self._load, "intend")

    def _record_intent(self, refs: Sequence[PartRef], now_ms: int) -> Steps[None]:
        parts = self._read_parts(refs)
        size = sum(part.contents_bytes for part in parts)
        check_quota(self._queue, sum(part.rows for part in parts), size)
        yield from self._check_files(parts)
        dropped = yield from self._find_duplicates(parts, now_ms)
        _check_alive(self._queue)
        digest = codec.load_digest(self._load.record.ref.name)
        intent = self._load.record.at(
            is_committing=True,
            seen_at_ms=now_ms,
            parts=[codec.part_key(digest, part.ref) for part in parts],
            dropped=dropped,
        )
        tx = Transaction(self._kernel, now_ms, self._queue)
        self._loads.put(tx, intent)
        tx.commit()

    def _read_parts(self, refs: Sequence[PartRef]) -> list[Part]:
        if len(refs) > LOAD_PARTS_MAX:
            raise InvalidArgument(f"parts: {len(refs)} are too many; the limit is {LOAD_PARTS_MAX}")
        if len({ref.partition for ref in refs}) < len(refs):
            raise InvalidArgument("parts: two attempts at one partition; name the one that counts")
        digest = codec.load_digest(self._load.record.ref.name)
        keys = [self._queue.prefix + codec.part_key(digest, ref) for ref in refs]
        stored = self._store.get_many(Family.LOADS, keys)
        for ref, value in zip(refs, stored, strict=True):
            if value is None:
                raise InvalidArgument(
                    f"parts: attempt {ref.attempt!r} at partition {ref.partition} was not finished"
                )
        parts = [codec.decode_part(value or b"") for value in stored]
        return sorted(parts, key=lambda part: part.ref.partition)

    def _check_files(self, parts: Sequence[Part]) -> Steps[None]:
        """Refuse missing files: after the intent, one would keep the store from being opened."""
        for count, part in enumerate(parts, 1):
            for file in part.files:
                if not (self._directory / codec.part_directory(part.ref) / file.name).is_file():
                    raise InvalidArgument(
                        f"parts: attempt {part.ref.attempt!r} at partition {part.ref.partition} "
                        f"has lost its file {file.name!r}; stage it again"
                    )
            if count % _CHECKED_AT_ONCE == 0:
                yield Step.TURN
                _check_alive(self._queue)

    def _find_duplicates(self, parts: Sequence[Part], now_ms: int) -> Steps[list[Dropped]]:
        keys = sum(part.keys for part in parts)
        if not keys:
            return []
        self._queue.keys.is_frozen = True
        search = DuplicateSearch(self._store, self._queue, self._load.record, now_ms)
        claims = [path for path, _ in self._files(parts, CLAIMS)]
        for _ in search.run(claims, self._directory / "search"):
            yield Step.TURN
            _check_alive(self._queue)
        if search.claims != keys:
            raise InvalidArgument(
                f"keys: {keys} were announced, but there are {search.claims} claims"
            )
        return search.dropped

    # --- after it ---------------------------------------------------------------------------------

    def finish(self) -> Steps[LoadedRecord]:
        """Take in the files of the parts that the intent names, and write the last batch."""
        try:
            yield Step.SYNC
            parts = yield from self._take_in()
            loaded = self._conclude(parts)
        except BaseException:
            if not self._queue.is_deleted:
                self._loads.move(self._load, "interrupt")
            raise
        finally:
            self._look_again()
        return loaded

    def _take_in(self) -> Steps[list[Part]]:
        _check_alive(self._queue)
        keys = [self._queue.prefix + key for key in self._load.record.parts]
        stored = self._store.get_many(Family.LOADS, keys)
        parts = [codec.decode_part(value or b"") for value in stored]
        for family in _UNSEEN:
            for path, first_key in self._files(parts, family.family_name):
                _check_alive(self._queue)
                self._store.take_in(family, [(path, first_key)])
                yield Step.TURN
        _check_alive(self._queue)
        for family in _SEEN:
            self._store.take_in(family, self._files(parts, family.family_name))
        return parts

    def _files(self, parts: Sequence[Part], family: str) -> list[tuple[Path, bytes]]:
        """The files of a family with their first keys."""
        return [
            (self._directory / codec.part_directory(part.ref) / file.name, file.first_key)
            for part in parts
            for file in part.files
            if file.family == family
        ]

    def _conclude(self, parts: Sequence[Part]) -> LoadedRecord:
        """Write the last batch: it counts the items, which polls get from now on."""
        queue, record = self._queue, self._load.record
        tx = Transaction(self._kernel, record.seen_at_ms, queue)
        rows = sum(part.rows for part in parts) - len(record.dropped)
        tx.counters.added_total += rows
        tx.counters.contents_bytes += sum(part.contents_bytes for part in parts)
        _count_waiting(tx, record, parts)
        forget_at_ms = record.started_at_ms + record.dedup_window_ms
        forgets = _entries(parts, Family.FORGET)
        if forgets:
            queue.retention.remember_loaded(tx, forget_at_ms, forgets)
        dropped = _drop_duplicates(tx, record) if record.dropped else []
        if record.batch:
            digest = sum(int.from_bytes(part.digest) for part in parts)
            digest -= sum(ids_digest(run.last, run.count) for run in dropped)
            queue.batches.count_loaded(tx, record.batch, rows, digest)
        loaded = LoadedRecord(
            ref=record.ref,
            batch=record.batch,
            started_at_ms=record.started_at_ms,
            committed_at_ms=tx.now_ms,
            forget_at_ms=tx.now_ms + LOAD_KEEP_MS,
            rows=rows,
            duplicates=len(record.dropped),
        )
        queue.retention.cancel(tx, record.forget_at_ms, codec.load_digest(record.ref.name))
        self._loads.end(tx, self._load, "conclude")
        self._loads.remember(tx, loaded)
        tx.commit()
        return loaded

    def _look_again(self) -> None:
        """Schedule a look at the keys that came due during the commit."""
        if not self._queue.is_deleted:
            self._kernel.agenda.schedule(self._queue.queue_id, self._queue.counters.forget_due_ms)


def _count_waiting(tx: QueueTx, record: LoadRecord, parts: Sequence[Part]) -> None:
    for part in parts:
        ids = record.id_head + part.ref.partition.to_bytes(PARTITION_BYTES)
        for level, count in enumerate(part.levels):
            if count:
                first = due_part(record.started_at_ms, ids + bytes(ROW_BYTES))
                tx.queue.ready.count_loaded(tx, level, count, first)
        if part.delayed:
            count_delayed(tx, part.delayed, part.delayed_first_ms)


def _entries(parts: Sequence[Part], family: Family) -> int:
    """How many entries the files of a family have."""
    files = [file for part in parts for file in part.files if file.family == family.family_name]
    return sum(file.entries for file in files)


def _drop_duplicates(tx: QueueTx, record: LoadRecord) -> list[Run]:
    """Delete the duplicates, and let their keys name the first item again; returns their runs."""
    ready, delayed = take_waiting(tx, [each.item_id for each in record.dropped])
    runs = ready + delayed
    tx.queue.blocks.drop(tx, runs)
    tx.counters.contents_bytes -= sum(run.size for run in runs)
    for each in record.dropped:
        tx.batch.put(Family.KEYS, tx.prefix + each.digest, each.entry)
    tx.counters.duplicates_total += len(record.dropped)
    return runs
