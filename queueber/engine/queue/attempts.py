"""Charge: an attempt failed. The item comes back after a while, or is a dead letter."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_attempts, encode_attempts, encode_dead
from queueber.db.records.keys import due_part
from queueber.db.records.marks import decode_mark, encode_mark, mark_group_max
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.ready_window import Entry
from queueber.engine.records.batches import Side, count_ended
from queueber.model import QueueSettings


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that is nowhere any more, because this attempt at it failed."""

    item_id: bytes
    mark: bytes
    error: str
    delay_ms: int | None
    """None: as the queue's backoff says."""
    reason: DeathReason
    """Why it is dead, if this was the last attempt."""


def charge(
    engine: Engine,
    queue: QueueState,
    change: Change,
    failures: Sequence[Failure],
    now_ms: int,
) -> list[bool]:
    """For each, whether it comes back; if not, it is dead."""
    keys = [queue.prefix + failure.item_id for failure in failures]
    histories = engine.store.get_many(Family.ATTEMPTS, keys)
    ready: list[Entry] = []
    delayed: list[Entry] = []
    dead: list[tuple[bytes, bytes]] = []
    comes_back = []
    for failure, key, history in zip(failures, keys, histories, strict=True):
        mark = decode_mark(failure.mark)
        times_ms = [] if history is None else decode_attempts(history)[0]
        times_ms.append(now_ms)
        change.batch.put(Family.ATTEMPTS, key, encode_attempts(times_ms, failure.error))
        attempts = mark.attempts + 1
        charged = encode_mark(mark._replace(attempts=attempts))
        is_dead = attempts >= queue.settings.attempts_max
        comes_back.append(not is_dead)
        if is_dead:
            change.batch.put(Family.DEAD, key, encode_dead(now_ms, failure.reason.value, charged))
            dead.append((failure.item_id, charged))
            continue
        delay_ms = failure.delay_ms
        if delay_ms is None:
            delay_ms = backoff_ms(queue.settings, failure.item_id, attempts)
        entry = (due_part(now_ms + delay_ms, failure.item_id), charged)
        (delayed if delay_ms else ready).append(entry)

    if ready:
        change.make_ready(sorted(ready))
    if delayed:
        change.make_delayed(delayed)
    counters = change.counters
    counters.failed_total += len(failures)
    if dead:
        counters.dead += len(dead)
        counters.suspects -= sum(1 for _, mark in dead if mark_group_max(mark))
        counters.died_total += len(dead)
        count_ended(queue, change, dead, Side.DEAD, now_ms)
        queue.dead_low = min(queue.dead_low, *(item_id for item_id, _ in dead))
    return comes_back


def backoff_ms(settings: QueueSettings, item_id: bytes, attempts: int) -> int:
    """How long an item that has failed so often stays hidden.

    Chance comes from the id, not from a random source: the engine stays deterministic, and items
    that failed together still come back apart.
    """
    if settings.backoff_ms:
        return settings.backoff_ms[min(attempts, len(settings.backoff_ms)) - 1]
    # A factor of 10 to the power of 1,000 is no float; the cap is reached long before.
    delay_ms = float(settings.backoff_base_ms)
    for _ in range(attempts - 1):
        delay_ms *= settings.backoff_factor
        if delay_ms >= settings.backoff_cap_ms:
            break
    delay_ms = min(delay_ms, settings.backoff_cap_ms)
    digest = blake2b(item_id + attempts.to_bytes(2), digest_size=4).digest()
    chance = int.from_bytes(digest) / (1 << 32)
    return round(delay_ms * (1 - settings.backoff_jitter * chance))
