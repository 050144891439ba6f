"""Batches: how many items of a fan-out were added, done and dead, and which, as digests.

A digest is the sum of the hashes of ids. That added equals done plus dead in number and in digest
proves that each item that came has ended exactly once.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

from queueber.db.families import Family
from queueber.db.records.batches import (
    BATCH_NUMBER_BYTES,
    DIGEST_MODULUS,
    BatchRecord,
    batch_number_part,
    decode_batch,
    ids_digest,
)
from queueber.db.records.keys import DIGEST_BYTES, text_digest
from queueber.db.records.marks import mark_batch
from queueber.db.records.retention import FORGET_BATCH
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.view import live_view
from queueber.engine.records.reminders import remember_to_forget
from queueber.errors import NotFound, ResourceExhausted
from queueber.limits import BATCH_KEEP_MS, BATCHES_MAX, ID_BYTES
from queueber.model import Receipt


class Side(Enum):
    """How items leave a batch's live ones."""

    DONE = "done"
    DEAD = "dead"


def open_batch(engine: Engine, queue: QueueState, change: Change, name: str) -> int:
    """The number of a batch, which begins now if it is new."""
    number = live_view(engine, queue).batch_number(name)
    if number is not None:
        return number
    counters = change.counters
    if counters.batches >= BATCHES_MAX:
        raise ResourceExhausted(
            f"queue {queue.name!r} remembers {BATCHES_MAX} batches, the limit; complete ones are "
            f"forgotten {BATCH_KEEP_MS // 1000} s after their end"
        )
    counters.batches += 1
    counters.last_batch += 1
    number = counters.last_batch
    change.batch.put(
        Family.BATCH_NAMES, queue.prefix + text_digest(name), batch_number_part(number)
    )
    change.add_batch(number, BatchRecord(name))
    return number


def hold_batch(engine: Engine, queue: QueueState, change: Change, name: str) -> int:
    """As `open_batch`, and it is not complete before it is let go."""
    number = open_batch(engine, queue, change, name)
    change.batch_record(number).loads += 1
    return number


def let_go_batch(queue: QueueState, change: Change, number: int, now_ms: int) -> None:
    """One who held it has ended. A batch that began with that, and got nothing, goes."""
    record = change.batch_record(number)
    record.loads -= 1
    if record.added == 0 and not record.loads and not record.forget_at_ms:
        change.drop_batch(number)
    else:
        _changed(queue, change, number, record, now_ms)


def count_added(
    queue: QueueState, change: Change, number: int, ids: Sequence[bytes], now_ms: int
) -> None:
    """Items were added; none, when all of a call were there already."""
    count_loaded(queue, change, number, len(ids), ids_digest(ids), now_ms)


def count_loaded(
    queue: QueueState, change: Change, number: int, count: int, digest: int, now_ms: int
) -> None:
    """The same, for items whose digest is known."""
    record = change.batch_record(number)
    record.added += count
    record.added_digest = (record.added_digest + digest) % DIGEST_MODULUS
    _changed(queue, change, number, record, now_ms)


def count_ended(
    queue: QueueState,
    change: Change,
    ended: Iterable[tuple[bytes, bytes]],
    side: Side,
    now_ms: int,
) -> None:
    """Items, given as id and mark, are done or dead; those of no batch do not matter."""
    for number, ids in _by_batch(ended).items():
        record = change.batch_record(number)
        _move(record, side, len(ids), ids_digest(ids))
        _changed(queue, change, number, record, now_ms)


def _changed(
    queue: QueueState, change: Change, number: int, record: BatchRecord, now_ms: int
) -> None:
    """Take note of the time; a batch that has ended is to be forgotten some day."""
    record.changed_at_ms = now_ms
    if record.live == 0 and not record.loads and not record.forget_at_ms:
        record.forget_at_ms = now_ms + BATCH_KEEP_MS
        remember_to_forget(
            queue, change, record.forget_at_ms, batch_reference(number), FORGET_BATCH
        )


def count_revived(change: Change, revived: Iterable[tuple[bytes, bytes]], now_ms: int) -> None:
    """Dead items are live again; their batches must still be known."""
    for number, ids in _by_batch(revived).items():
        record = change.batch_record(number)
        _move(record, Side.DEAD, -len(ids), -ids_digest(ids))
        record.changed_at_ms = now_ms


def _move(record: BatchRecord, side: Side, count: int, digest: int) -> None:
    if side is Side.DONE:
        record.done += count
        record.done_digest = (record.done_digest + digest) % DIGEST_MODULUS
    else:
        record.dead += count
        record.dead_digest = (record.dead_digest + digest) % DIGEST_MODULUS


def _by_batch(items: Iterable[tuple[bytes, bytes]]) -> dict[int, list[bytes]]:
    batches: dict[int, list[bytes]] = {}
    for item_id, mark in items:
        if number := mark_batch(mark):
            batches.setdefault(number, []).append(item_id)
    return batches


def batch_reference(number: int) -> bytes:
    """A batch in the family `forget`."""
    return batch_number_part(number) + bytes(ID_BYTES - BATCH_NUMBER_BYTES)


def batch_name(engine: Engine, queue: QueueState, number: int) -> str:
    """The name of a batch; "" for none, and for one that is forgotten."""
    # Asked for every item that is polled: most have none, or one that was just seen.
    if number == 0:
        return ""
    return queue.batch_names.get(number) or live_view(engine, queue).batch_name(number)


def receipt(engine: Engine, queue: QueueState, name: str) -> Receipt:
    number = live_view(engine, queue).batch_number(name)
    if number is None:
        raise NotFound(
            f"batch: queue {queue.name!r} knows no batch {name!r}; it begins with its first add, "
            f"and is forgotten {BATCH_KEEP_MS // 1000} s after its end"
        )
    stored = engine.store.get(Family.BATCHES, queue.prefix + batch_number_part(number))
    record = decode_batch(stored or b"")
    ended_digest = (record.done_digest + record.dead_digest) % DIGEST_MODULUS
    return Receipt(
        batch=name,
        added=record.added,
        done=record.done,
        dead=record.dead,
        live=record.live,
        added_digest=record.added_digest.to_bytes(DIGEST_BYTES),
        done_digest=record.done_digest.to_bytes(DIGEST_BYTES),
        dead_digest=record.dead_digest.to_bytes(DIGEST_BYTES),
        complete=record.live == 0 and not record.loads and record.added_digest == ended_digest,
    )
