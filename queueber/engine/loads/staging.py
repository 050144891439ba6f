"""Begin a load, stage its parts, abort it.

The first caller that begins a load gives it a range of ids and holds its batch open; others join.
Clients build the parts as files, which the server keeps beside the store. The commit names the
parts to take in, and the server deletes all others. So attempts at a partition may overlap.
"""

from queueber.db.families import Family
from queueber.db.records import loads as codec
from queueber.db.records.loads import LoadedRecord, LoadRecord
from queueber.db.records.remembered import FORGET_LOAD
from queueber.engine.loads.loads import Load, LoadPhase, Loads
from queueber.engine.queue.add import add
from queueber.engine.queue.queue_state import QueueTx
from queueber.errors import Aborted, FailedPrecondition, ResourceExhausted
from queueber.ids import range_end
from queueber.limits import LOADS_MAX
from queueber.model import Added, LoadRef, NewItems, Part


def begin_load(
    tx: QueueTx,
    loads: Loads,
    ref: LoadRef,
    *,
    batch: str,
    timeout_ms: int,
    token: bytes,
    must_exist: bool = False,
) -> LoadRecord | LoadedRecord:
    """Begin the load, or join it; returns its record, or that of a load that is committed already.

    With `must_exist` a load that is neither under way nor committed is `NotFound`. A caller that
    joins with a shorter timeout shortens it for all. A load of the same name in an earlier epoch is
    dropped.
    """
    if (loaded := loads.committed(ref)) is not None:
        return loaded
    known = loads.of_name(ref.name)
    if known is not None and known.record.ref.epoch >= ref.epoch:
        return _join(tx, loads, known, ref, batch, timeout_ms, knows_batch=not must_exist)
    if must_exist:
        raise loads.not_under_way(ref)
    if tx.queue.changes is not None and tx.queue.changes.takes_inserts:
        raise FailedPrecondition(
            f"load: a topic gets an event for every item that is added to queue {tx.queue.name!r}, "
            "and a load brings items as files; add them, or drop that source of the topic first"
        )
    if known is None and len(loads) >= LOADS_MAX:
        raise ResourceExhausted(
            f"queue {tx.queue.name!r} has {LOADS_MAX} loads under way, the limit; commit or abort "
            "some"
        )
    if known is not None:
        _abort(tx, loads, known)

    id_head = tx.ids.mint_range(tx.now_ms)
    tx.counters.last_id = range_end(id_head)
    record = LoadRecord(
        ref=ref,
        batch=tx.queue.batches.hold(tx, batch) if batch else 0,
        started_at_ms=int.from_bytes(id_head[:6]),
        seen_at_ms=tx.now_ms,
        timeout_ms=timeout_ms,
        forget_at_ms=tx.now_ms + timeout_ms,
        id_head=id_head,
        dedup_window_ms=tx.queue.settings.dedup_window_ms,
        token=token,
    )
    loads.put(tx, record)
    tx.queue.retention.remember(tx, record.forget_at_ms, codec.load_digest(ref.name), FORGET_LOAD)
    return record


def _join(
    tx: QueueTx,
    loads: Loads,
    load: Load,
    ref: LoadRef,
    batch: str,
    timeout_ms: int,
    *,
    knows_batch: bool,
) -> LoadRecord:
    """A `timeout_ms` of 0 leaves the load its own; so does a caller that names no batch."""
    record = load.record
    if record.ref.epoch > ref.epoch:
        raise Aborted(
            f"load: {ref.name!r} is in epoch {record.ref.epoch}, and epoch {ref.epoch} is over; "
            "stop, somebody else has taken over"
        )
    its_batch = tx.queue.batches.names.name(record.batch)
    if batch != its_batch and (batch or knows_batch):
        raise Aborted(
            f"batch: load {record.ref.name!r} adds to batch {its_batch!r}, not to {batch!r}"
        )
    if load.phase is not LoadPhase.STAGING:
        return record  # the commit has set its time
    record = record.at(seen_at_ms=max(record.seen_at_ms, tx.now_ms))
    if 0 < timeout_ms < record.timeout_ms and not loads.is_commit_under_way:
        record = _shorten(tx, record, timeout_ms)
    loads.put(tx, record)
    return record


def _shorten(tx: QueueTx, record: LoadRecord, timeout_ms: int) -> LoadRecord:
    """The caller that begins a load may need more time until the first one joins than later."""
    forget_at_ms = min(record.forget_at_ms, record.seen_at_ms + timeout_ms)
    if forget_at_ms != record.forget_at_ms:
        digest = codec.load_digest(record.ref.name)
        tx.queue.retention.cancel(tx, record.forget_at_ms, digest)
        tx.queue.retention.remember(tx, forget_at_ms, digest, FORGET_LOAD)
    return record.at(timeout_ms=timeout_ms, forget_at_ms=forget_at_ms)


def touch_load(tx: QueueTx, loads: Loads, ref: LoadRef) -> LoadRecord:
    """A caller adds to the load now, so its timeout starts again."""
    load = loads.staging(ref)
    record = loads.record_in(tx, load)
    if record.seen_at_ms < tx.now_ms:
        record = record.at(seen_at_ms=tx.now_ms)
        loads.put(tx, record)
    return record


def add_rows(tx: QueueTx, loads: Loads, items: NewItems) -> Added:
    """Add items whose ids contain their origin; refused if their load has ended."""
    added = add(tx, items)
    if items.origin is not None and not added.is_repeat:
        touch_load(tx, loads, items.origin.load)
    return added


def finish_part(tx: QueueTx, loads: Loads, ref: LoadRef, part: Part) -> LoadRecord:
    """Record a part whose files exist and have been checked."""
    record = touch_load(tx, loads, ref)
    key = tx.prefix + codec.part_key(codec.load_digest(ref.name), part.ref)
    before = tx.store.get(Family.LOADS, key)
    known_rows = 0 if before is None else codec.decode_part(before).rows
    record = record.at(rows=record.rows + part.rows - known_rows)
    tx.batch.put(Family.LOADS, key, codec.encode_part(part))
    loads.put(tx, record)
    return record


def abort_load(tx: QueueTx, loads: Loads, ref: LoadRef) -> bool:
    """Drop all that was staged; False if there is no such load, or it is committed."""
    load = loads.find(ref)
    if load is None:
        return False
    _abort(tx, loads, load)
    return True


def _abort(tx: QueueTx, loads: Loads, load: Load) -> None:
    name = load.record.ref.name
    if load.phase is not LoadPhase.STAGING:
        raise Aborted(f"load: {name!r} is being committed; it can no longer be aborted")
    tx.queue.retention.cancel(tx, load.record.forget_at_ms, codec.load_digest(name))
    loads.drop(tx, load)
