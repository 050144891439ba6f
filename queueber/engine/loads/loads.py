"""Loads: many items that become visible at once. Here they begin, gather parts, and are dropped.

A load is known by its name and epoch. Whoever begins it first gets it a range of ids of its own,
and holds its batch open; others join it. Its parts are files, built elsewhere, that wait beside the
store; `load_commit` takes those that the commit names, and all else of the load goes. So the
attempts at a partition need not know of each other.
"""

from dataclasses import replace

from queueber.db.families import Family
from queueber.db.records.bookkeeping import FORGET_LOAD
from queueber.db.records.loads import (
    LoadedRecord,
    LoadRecord,
    decode_loaded,
    decode_part,
    encode_load,
    encode_part,
    load_digest,
    load_key,
    loaded_digest,
    loaded_key,
    part_key,
)
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.records.batches import batch_name, hold_batch, let_go_batch
from queueber.engine.records.reminders import drop_forget_entry, remember_to_forget
from queueber.errors import Aborted, NotFound, ResourceExhausted
from queueber.ids import range_end
from queueber.limits import LOADS_MAX
from queueber.model import LoadRef, Part, PartRef


def find_committed(engine: Engine, queue: QueueState, ref: LoadRef) -> LoadedRecord | None:
    """What is remembered of the load, or of a later epoch of its name, if it was committed."""
    stored = engine.store.get(Family.LOADS, queue.prefix + loaded_key(loaded_digest(ref.name)))
    if stored is None:
        return None
    loaded = decode_loaded(stored)
    return loaded if loaded.ref.epoch >= ref.epoch else None


def begin_load(
    engine: Engine,
    queue: QueueState,
    ref: LoadRef,
    *,
    batch: str,
    timeout_ms: int,
    token: bytes,
    now_ms: int,
    must_exist: bool = False,
) -> LoadRecord | LoadedRecord:
    """Begin the load, or join it; what is remembered of it when it is committed already.

    With `must_exist` a load that is neither under way nor committed is `NotFound`.
    Who joins with a shorter timeout shortens it for all.

    A load of the same name in an epoch before is dropped: nobody will commit it any more.
    """
    if (loaded := find_committed(engine, queue, ref)) is not None:
        return loaded
    digest = load_digest(ref.name)
    known = queue.loads.get(digest)
    if known is not None and known.ref.epoch >= ref.epoch:
        return _join(engine, queue, known, ref, batch, timeout_ms, now_ms)
    if must_exist:
        raise _not_under_way(queue, ref)
    if known is None and len(queue.loads) >= LOADS_MAX:
        raise ResourceExhausted(
            f"queue {queue.name!r} has {LOADS_MAX} loads under way, the limit; commit or abort some"
        )
    if known is not None:
        abort_load(engine, queue, known.ref, now_ms)

    change = Change(engine, queue)
    id_head = engine.ids.mint_range(now_ms)
    change.counters.last_id = range_end(id_head)
    load = LoadRecord(
        ref=ref,
        batch=hold_batch(engine, queue, change, batch) if batch else 0,
        started_at_ms=int.from_bytes(id_head[:6]),
        seen_at_ms=now_ms,
        timeout_ms=timeout_ms,
        forget_at_ms=now_ms + timeout_ms,
        id_head=id_head,
        dedup_window_ms=queue.settings.dedup_window_ms,
        token=token,
    )
    change.put_load(digest, load)
    remember_to_forget(queue, change, load.forget_at_ms, digest, FORGET_LOAD)
    change.commit()
    return load


def _join(
    engine: Engine,
    queue: QueueState,
    load: LoadRecord,
    ref: LoadRef,
    batch: str,
    timeout_ms: int,
    now_ms: int,
) -> LoadRecord:
    if load.ref.epoch > ref.epoch:
        raise Aborted(
            f"load: {ref.name!r} is in epoch {load.ref.epoch}, and epoch {ref.epoch} is over; "
            "stop, somebody else has taken over"
        )
    its_batch = batch_name(engine, queue, load.batch)
    if batch != its_batch:
        raise Aborted(f"batch: load {ref.name!r} adds to batch {its_batch!r}, not to {batch!r}")
    if load.is_committing or queue.committing == load_digest(ref.name):
        return load  # it has its time, that of the commit
    load.seen_at_ms = max(load.seen_at_ms, now_ms)
    if timeout_ms < load.timeout_ms and not is_commit_under_way(queue):
        return _shorten(engine, queue, load, timeout_ms)
    return load


def _shorten(engine: Engine, queue: QueueState, load: LoadRecord, timeout_ms: int) -> LoadRecord:
    """Who begins a load may allow more time, until the first to join it, than the others need."""
    digest = load_digest(load.ref.name)
    forget_at_ms = min(load.forget_at_ms, load.seen_at_ms + timeout_ms)
    shortened = replace(load, timeout_ms=timeout_ms, forget_at_ms=forget_at_ms)
    change = Change(engine, queue)
    change.put_load(digest, shortened)
    if forget_at_ms != load.forget_at_ms:
        drop_forget_entry(queue, change, load.forget_at_ms, digest)
        remember_to_forget(queue, change, forget_at_ms, digest, FORGET_LOAD)
    change.commit()
    return shortened


def staging_load(queue: QueueState, ref: LoadRef, now_ms: int) -> LoadRecord:
    """The load, to which something is to be added now."""
    load = queue.loads.get(load_digest(ref.name))
    if load is None or load.ref.epoch != ref.epoch:
        raise _not_under_way(queue, ref)
    if load.is_committing or queue.committing == load_digest(ref.name):
        raise Aborted(f"load: {ref.name!r} is being committed; nothing is added to it any more")
    load.seen_at_ms = max(load.seen_at_ms, now_ms)
    return load


def _not_under_way(queue: QueueState, ref: LoadRef) -> NotFound:
    return NotFound(
        f"load: {ref.name!r} is not under way in queue {queue.name!r}; it was committed, "
        "aborted, or dropped because nobody called in time"
    )


def is_committing(queue: QueueState, ref: LoadRef) -> bool:
    """Whether it is recorded that the load will be committed."""
    load = queue.loads.get(load_digest(ref.name))
    return load is not None and load.ref == ref and load.is_committing


def is_finished(engine: Engine, queue: QueueState, ref: LoadRef, part: PartRef) -> bool:
    """Whether the part was finished: its files must stay as they are."""
    key = part_key(load_digest(ref.name), part)
    return engine.store.get(Family.LOADS, queue.prefix + key) is not None


def is_commit_under_way(queue: QueueState) -> bool:
    """Of any load, whether somebody works at it or waits for the disk."""
    return bool(queue.committing) or any(load.is_committing for load in queue.loads.values())


def finish_part(
    engine: Engine, queue: QueueState, ref: LoadRef, part: Part, now_ms: int
) -> LoadRecord:
    """Take note of a part whose files are there and have been checked."""
    load = staging_load(queue, ref, now_ms)
    digest = load_digest(ref.name)
    key = queue.prefix + part_key(digest, part.ref)
    before = engine.store.get(Family.LOADS, key)
    known_rows = 0 if before is None else decode_part(before).rows
    load = replace(load, rows=load.rows + part.rows - known_rows)
    batch = engine.store.batch()
    batch.put(Family.LOADS, key, encode_part(part))
    batch.put(Family.LOADS, queue.prefix + load_key(digest), encode_load(load))
    engine.store.write(batch)
    queue.loads[digest] = load
    return load


def abort_load(engine: Engine, queue: QueueState, ref: LoadRef, now_ms: int) -> bool:
    """Drop all that was staged; False when there is no such load, or it is committed."""
    load = queue.loads.get(load_digest(ref.name))
    if load is None or load.ref.epoch != ref.epoch:
        return False
    if load.is_committing or queue.committing == load_digest(ref.name):
        raise Aborted(f"load: {ref.name!r} is being committed; it can no more be aborted")
    change = Change(engine, queue)
    drop_forget_entry(queue, change, load.forget_at_ms, load_digest(ref.name))
    drop_load(queue, change, load, now_ms)
    change.commit()
    return True


def drop_load(queue: QueueState, change: Change, load: LoadRecord, now_ms: int) -> None:
    if load.batch:
        let_go_batch(queue, change, load.batch, now_ms)
    change.end_load(load_digest(load.ref.name))
