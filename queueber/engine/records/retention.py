"""Forget: keys whose window is over, producers and loads that fell silent, what ended long ago.

Each has one entry in the family `forget`, at the time when it is to be looked at. A key is gone
then. A producer, batch or load that has been active since gets a later entry instead, so that its
activity costs no write here.
"""

from dataclasses import replace

from queueber.db.families import Family
from queueber.db.records.batches import BATCH_NUMBER_BYTES
from queueber.db.records.keys import NEVER_MS, PREFIX_BYTES, split_due_part
from queueber.db.records.loads import loaded_key
from queueber.db.records.producers import decode_producer, encode_producer
from queueber.db.records.retention import FORGET_BATCH, FORGET_KEY, FORGET_LOAD, FORGET_PRODUCER
from queueber.engine.kernel.due_scan import read_due
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.loads.loads import drop_load, is_commit_under_way
from queueber.engine.records.reminders import drop_forget_entry, remember_to_forget
from queueber.errors import invariant
from queueber.limits import (
    BATCH_KEEP_MS,
    PRODUCER_ANSWERS_KEPT,
    PRODUCER_KEEP_MS,
)


def answer_keys(producer_key: bytes, last_sequence: int) -> list[bytes]:
    """Of the answers that are kept of a producer: so few that a range deletion would cost more."""
    first = max(1, last_sequence - PRODUCER_ANSWERS_KEPT + 1)
    return [producer_key + number.to_bytes(8) for number in range(first, last_sequence + 1)]


def forget(engine: Engine, queue: QueueState, now_ms: int, entries_max: int) -> tuple[int, int]:
    """Look at up to `entries_max` due entries. Returns how many, and when to look again."""
    counters = queue.counters
    if counters.forget_due_ms > now_ms:
        return 0, counters.forget_due_ms
    if is_commit_under_way(queue):
        # It has looked at keys that must stay until it ends; then this is looked at again.
        return 0, NEVER_MS
    prefix = queue.prefix
    due, low_ms, look_again_ms = read_due(
        engine.store,
        Family.FORGET,
        prefix,
        low_ms=counters.forget_due_ms,
        now_ms=now_ms,
        limit=entries_max,
        total=counters.forgets,
    )
    if not due:
        # Known in memory only: it is written with the next change, and found again after a restart.
        counters.forget_due_ms = low_ms
        return 0, look_again_ms

    change = Change(engine, queue)
    change.counters.forget_due_ms = low_ms
    for key, kind in due:
        at_ms, reference = split_due_part(key[PREFIX_BYTES:])
        drop_forget_entry(queue, change, at_ms, reference)
        if kind == FORGET_KEY:
            change.batch.delete(Family.KEYS, prefix + reference)
        elif kind == FORGET_PRODUCER:
            _look_at_producer(engine, queue, change, reference, now_ms)
        elif kind == FORGET_BATCH:
            _look_at_batch(queue, change, reference, now_ms)
        elif kind == FORGET_LOAD:
            _look_at_load(queue, change, reference, now_ms)
        else:
            change.batch.delete(Family.LOADS, prefix + loaded_key(reference))
    change.commit()
    # What was put off is due later than what is due next, but it may be the only one.
    return len(due), min(look_again_ms, queue.counters.forget_due_ms)


def _look_at_producer(
    engine: Engine, queue: QueueState, change: Change, digest: bytes, now_ms: int
) -> None:
    key = queue.prefix + digest
    stored = engine.store.get(Family.PRODUCERS, key)
    invariant(stored is not None, "I11", queue=queue.name, producer=digest.hex())
    head = decode_producer(stored or b"")
    keep_until_ms = head.seen_at_ms + PRODUCER_KEEP_MS
    if keep_until_ms > now_ms:
        change.batch.put(
            Family.PRODUCERS, key, encode_producer(head._replace(forget_at_ms=keep_until_ms))
        )
        remember_to_forget(queue, change, keep_until_ms, digest, FORGET_PRODUCER)
    else:
        change.batch.delete(Family.PRODUCERS, key)
        change.batch.delete_many(Family.PRODUCERS, answer_keys(key, head.sequence))


def _look_at_batch(queue: QueueState, change: Change, reference: bytes, now_ms: int) -> None:
    number = int.from_bytes(reference[:BATCH_NUMBER_BYTES])
    # As this change has it: a load that held it may have been dropped a moment ago.
    record = change.batch_record(number)
    keep_until_ms = record.changed_at_ms + BATCH_KEEP_MS
    if record.live or record.loads:
        # It went on after its end. When it ends again, it is remembered to be forgotten again.
        record.forget_at_ms = 0
    elif keep_until_ms > now_ms:
        record.forget_at_ms = keep_until_ms
        remember_to_forget(queue, change, keep_until_ms, reference, FORGET_BATCH)
    else:
        change.drop_batch(number)
        queue.batch_names.pop(number, None)


def _look_at_load(queue: QueueState, change: Change, digest: bytes, now_ms: int) -> None:
    load = queue.loads[digest]
    keep_until_ms = load.seen_at_ms + load.timeout_ms
    if keep_until_ms > now_ms:
        change.put_load(digest, replace(load, forget_at_ms=keep_until_ms))
        remember_to_forget(queue, change, keep_until_ms, digest, FORGET_LOAD)
    else:
        drop_load(queue, change, load, now_ms)
