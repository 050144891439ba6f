"""Forget: keys whose window is over, producers that fell silent, batches that ended long ago.

Each has one entry in the family `forget`, at the time when it is to be looked at. A key is gone
then. A producer or batch that has been active since gets a later entry instead, so that its
activity costs no write here.
"""

from queueber.db.bookkeeping import (
    BATCH_NUMBER_BYTES,
    decode_batch,
    decode_producer,
    encode_producer,
)
from queueber.db.families import Family
from queueber.db.keys import PREFIX_BYTES, due_part, split_due_part, text_digest
from queueber.engine.change import Change
from queueber.engine.lookahead import read_due
from queueber.engine.state import Engine, QueueState
from queueber.errors import invariant
from queueber.limits import BATCH_KEEP_MS, PRODUCER_ANSWERS_KEPT, PRODUCER_KEEP_MS

FORGET_KEY = b"k"
FORGET_PRODUCER = b"p"
FORGET_BATCH = b"b"


def answer_keys(producer_key: bytes, last_sequence: int) -> list[bytes]:
    """Of the answers that are kept of a producer: so few that a range deletion would cost more."""
    first = max(1, last_sequence - PRODUCER_ANSWERS_KEPT + 1)
    return [producer_key + number.to_bytes(8) for number in range(first, last_sequence + 1)]


def remember_to_forget(
    queue: QueueState, change: Change, at_ms: int, reference: bytes, kind: bytes
) -> None:
    change.batch.put(Family.FORGET, queue.prefix + due_part(at_ms, reference), kind)
    change.counters.forgets += 1
    change.counters.forget_due_ms = min(change.counters.forget_due_ms, at_ms)
    change.look_at(at_ms)


def drop_forget_entry(queue: QueueState, change: Change, at_ms: int, reference: bytes) -> None:
    change.batch.delete(Family.FORGET, queue.prefix + due_part(at_ms, reference))
    change.counters.forgets -= 1


def forget(engine: Engine, queue: QueueState, now_ms: int, entries_max: int) -> tuple[int, int]:
    """Look at up to `entries_max` due entries. Returns how many, and when to look again."""
    counters = queue.counters
    if counters.forget_due_ms > now_ms:
        return 0, counters.forget_due_ms
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
        else:
            _look_at_batch(engine, queue, change, reference, now_ms)
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


def _look_at_batch(
    engine: Engine, queue: QueueState, change: Change, reference: bytes, now_ms: int
) -> None:
    number = int.from_bytes(reference[:BATCH_NUMBER_BYTES])
    key = queue.prefix + reference[:BATCH_NUMBER_BYTES]
    record = decode_batch(engine.store.get(Family.BATCHES, key) or b"")
    keep_until_ms = record.changed_at_ms + BATCH_KEEP_MS
    if record.live:
        # It went on after its end. When it ends again, it is remembered to be forgotten again.
        change.batch_record(number).forget_at_ms = 0
    elif keep_until_ms > now_ms:
        change.batch_record(number).forget_at_ms = keep_until_ms
        remember_to_forget(queue, change, keep_until_ms, reference, FORGET_BATCH)
    else:
        change.batch.delete(Family.BATCHES, key)
        change.batch.delete(Family.BATCH_NAMES, queue.prefix + text_digest(record.name))
        change.counters.batches -= 1
        queue.batch_names.pop(number, None)
