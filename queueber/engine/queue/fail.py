"""Fail: the holder says that the work on an item failed. It counts as an attempt.

After a failed attempt the item is retried after a delay, or becomes a dead letter. A lease that ran
out with a single item counts as a failed attempt, too (`expire.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

from queueber.db.families import Family
from queueber.db.records.keys import (
    MARK_ATTEMPTS_MAX,
    Entry,
    HeldItem,
    decode_attempts,
    decode_mark,
    due_part,
    encode_attempts,
    encode_mark,
)
from queueber.engine.queue.isolation import end_quarantine
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.places import put_delayed
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side
from queueber.ids import ItemId
from queueber.limits import ATTEMPTS_CEILING
from queueber.model import FailOutcome, QueueSettings


def fail(
    tx: QueueTx,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    errors: Sequence[str],
    delays_ms: Sequence[int | None],
) -> list[FailOutcome]:
    """What became of each; every sequence has one for each id. A delay of None: the backoff."""
    marks = tx.queue.leases.take(tx, ids, leases)
    item_ids = cast("Sequence[ItemId]", ids)
    failures = [
        Failure((item_id, mark), error, delay_ms, DeathReason.FAILED)
        for item_id, mark, error, delay_ms in zip(item_ids, marks, errors, delays_ms, strict=True)
        if mark is not None
    ]
    if not failures:
        return [FailOutcome.REFUSED] * len(ids)
    comes_back = iter(charge(tx, failures))
    return [
        FailOutcome.REFUSED
        if mark is None
        else (FailOutcome.RETRIED if next(comes_back) else FailOutcome.DIED)
        for mark in marks
    ]


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that was taken out of its lease, because this attempt failed."""

    item: HeldItem
    error: str
    delay_ms: int | None
    """None: the queue's backoff decides."""
    reason: DeathReason
    """Why it is dead, if this was the last attempt."""


def charge(tx: QueueTx, failures: Sequence[Failure]) -> list[bool]:
    """Count one more failed attempt of each; whether it is retried. If not, it is dead."""
    queue, counters, now_ms = tx.queue, tx.counters, tx.now_ms
    attempts_max = queue.settings.attempts_max
    keys = [tx.prefix + failure.item[0] for failure in failures]
    histories = tx.store.get_many(Family.ATTEMPTS, keys)
    ready: list[Entry] = []
    delayed: list[Entry] = []
    dead: list[HeldItem] = []
    reasons: list[int] = []
    comes_back = []
    for failure, key, history in zip(failures, keys, histories, strict=True):
        item_id, mark = failure.item[0], decode_mark(failure.item[1])
        times_ms = [] if history is None else decode_attempts(history)[0]
        times_ms.append(now_ms)
        kept_ms = times_ms[-ATTEMPTS_CEILING:]
        tx.batch.put(Family.ATTEMPTS, key, encode_attempts(kept_ms, failure.error))
        attempts = min(mark.attempts + 1, MARK_ATTEMPTS_MAX)
        counted = encode_mark(mark._replace(attempts=attempts))
        is_dead = bool(attempts_max) and attempts >= attempts_max
        comes_back.append(not is_dead)
        if is_dead:
            dead.append((item_id, counted))
            reasons.append(failure.reason.value)
            continue
        delay_ms = failure.delay_ms
        if delay_ms is None:
            delay_ms = backoff_ms(queue.settings, item_id, attempts)
        entry = (due_part(now_ms + delay_ms, item_id), counted)
        (delayed if delay_ms else ready).append(entry)

    if ready:
        queue.ready.put(tx, sorted(ready))
    if delayed:
        put_delayed(tx, delayed)
    counters.failed_total += len(failures)
    if dead:
        queue.dead_letters.put(tx, dead, reasons)
        end_quarantine(tx, dead)
        queue.batches.count_ended(tx, dead, Side.DEAD)
    return comes_back


def backoff_ms(settings: QueueSettings, item_id: ItemId, attempts: int) -> int:
    """How long an item stays hidden after its failure number `attempts`.

    The jitter comes from a hash of the id, not from a random source: the engine stays
    deterministic, and items that failed together are still retried at different times.
    """
    if settings.backoff_ms:
        return settings.backoff_ms[min(attempts, len(settings.backoff_ms)) - 1]
    # Not `factor ** attempts`: 10 ** 1000 is too large for a float. The cap is reached long before.
    delay_ms = float(settings.backoff_base_ms)
    does_grow = delay_ms > 0 and settings.backoff_factor > 1
    for _ in range(attempts - 1 if does_grow else 0):
        delay_ms *= settings.backoff_factor
        if delay_ms >= settings.backoff_cap_ms:
            break
    delay_ms = min(delay_ms, settings.backoff_cap_ms)
    digest = blake2b(item_id + attempts.to_bytes(2), digest_size=4).digest()
    chance = int.from_bytes(digest) / (1 << 32)
    return round(delay_ms * (1 - settings.backoff_jitter * chance))
