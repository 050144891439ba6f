"""Fail: the holder says that the work on an item failed. It counts as an attempt.

After a failed attempt the item is retried after a delay, or becomes a dead letter. A lease that ran
out with a single item counts as a failed attempt, too (`expire.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress

from queueber.db.families import Family
from queueber.db.records.attempts import NO_HISTORY, Failed, decode_attempts, encode_attempts
from queueber.db.records.cutting import join_entries, singles
from queueber.db.records.runs import (
    MARK_ATTEMPTS_MAX,
    Entry,
    Run,
    decode_mark,
    encode_mark,
    entry_at,
)
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.isolation import end_quarantine
from queueber.engine.queue.lifecycle import DeathReason, State
from queueber.engine.queue.options import NONE_STORED, options_of
from queueber.engine.queue.places import put_delayed
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.records.batches import Side
from queueber.ids import ItemId
from queueber.limits import ATTEMPTS_CEILING
from queueber.model import AttemptEnd, FailOutcome, QueueSettings


def fail(
    tx: QueueTx,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    errors: Sequence[str],
    delays_ms: Sequence[int | None],
) -> list[FailOutcome]:
    """What became of each; every sequence has one for each id. A delay of None: the backoff."""
    taken = tx.queue.leases.take(tx, ids, leases)
    told = zip(ids, errors, delays_ms, strict=True)
    outcomes = iter(fail_runs(tx, taken.runs, list(compress(told, taken.held))))
    return [next(outcomes) if is_held else FailOutcome.REFUSED for is_held in taken.held]


Told = tuple[bytes, str, int | None]
"""Of a failure: the id of the item, the error, and the delay."""


def fail_runs(tx: QueueTx, runs: Sequence[Run], told: Sequence[Told]) -> list[FailOutcome]:
    """Items that were taken out of their leases have failed; `told` has one for each."""
    if not told:
        return []
    blocks = tx.queue.blocks.reader()
    # Each item fails with an error and a delay of its own, so each is a run of its own.
    items = {each.last: each for run in runs for each in singles(run, blocks.sizes(run))}
    comes_back = charge(
        tx,
        [
            Failure(items[ItemId(item_id)], error, delay_ms, DeathReason.FAILED)
            for item_id, error, delay_ms in told
        ],
    )
    return [FailOutcome.RETRIED if each else FailOutcome.DIED for each in comes_back]


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that was taken out of its lease, because this attempt failed."""

    item: Run
    """A run of one."""
    error: str
    delay_ms: int | None
    """None: the backoff decides, that of the item or else of the queue."""
    reason: DeathReason
    """Why it is dead, if this was the last attempt."""
    end: AttemptEnd = AttemptEnd.FAILED


def charge(tx: QueueTx, failures: Sequence[Failure]) -> list[bool]:
    """Count one more failed attempt of each; whether it is retried. If not, it is dead."""
    queue, now_ms = tx.queue, tx.now_ms
    keys = [tx.prefix + failure.item.last for failure in failures]
    histories = tx.store.get_many(Family.ATTEMPTS, keys)
    options = options_of(tx, [failure.item for failure in failures])
    ready: list[Entry] = []
    delayed: list[Entry] = []
    dead: dict[DeathReason, list[Run]] = {}
    comes_back = []
    moves: list[Moved] | None = None if queue.changes is None else []
    for failure, key, history in zip(failures, keys, histories, strict=True):
        mark = decode_mark(failure.item.mark)
        past = NO_HISTORY if history is None else decode_attempts(history)
        error = past.last_error if past.last else None
        failed = Failed(failure.end, failure.error)
        again = past.failed_again(now_ms, failed, ATTEMPTS_CEILING)
        tx.batch.put(Family.ATTEMPTS, key, encode_attempts(again))
        attempts = min(mark.attempts + 1, MARK_ATTEMPTS_MAX)
        counted = failure.item._replace(mark=encode_mark(mark._replace(attempts=attempts)))
        own = options.get(failure.item.last, NONE_STORED)
        attempts_max = own.attempts_max
        if attempts_max is None:
            attempts_max = queue.settings.attempts_max
        is_dead = bool(attempts_max) and attempts >= attempts_max
        comes_back.append(not is_dead)
        if is_dead:
            dead.setdefault(failure.reason, []).append(counted)
            if moves is not None:
                moves.append(_move(failure, State.DEAD, counted, 0, error))
            continue
        delay_ms = failure.delay_ms
        if delay_ms is None:
            delay_ms = backoff_ms(queue.settings, counted.last, attempts, own.backoff_ms)
        (delayed if delay_ms else ready).append(entry_at(now_ms + delay_ms, counted))
        if moves is not None:
            state = State.DELAYED if delay_ms else State.READY
            moves.append(_move(failure, state, counted, now_ms + delay_ms, error))

    if queue.changes is not None and moves:
        queue.changes.moved(tx, moves)
    if ready:
        queue.ready.put(tx, join_entries(ready))
    if delayed:
        put_delayed(tx, join_entries(delayed))
    tx.counters.failed_total += len(failures)
    for reason, runs in dead.items():
        queue.dead_letters.put(tx, runs, reason.value)
        end_quarantine(tx, runs)
        queue.batches.count_ended(tx, runs, Side.DEAD)
    return comes_back


def _move(
    failure: Failure, now: State, counted: Run, visible_at_ms: int, error_before: str | None
) -> Moved:
    if now is State.DEAD:
        change = Change.DEAD
    else:
        change = Change.FAILED if failure.reason is DeathReason.FAILED else Change.EXPIRED
    return Moved(
        change,
        failure.item,
        State.LEASED,
        now,
        counted.mark,
        visible_at_ms if now is State.DELAYED else 0,
        failure.error,
        error_before,
    )


def backoff_ms(
    settings: QueueSettings, item_id: ItemId, attempts: int, own_ms: Sequence[int] = ()
) -> int:
    """How long an item stays hidden after its failure number `attempts`; `own_ms` has the delays
    that the item has of its own.

    The jitter comes from a hash of the id, not from a random source: the engine stays
    deterministic, and items that failed together are still retried at different times.
    """
    if steps_ms := own_ms or settings.backoff_ms:
        return steps_ms[min(attempts, len(steps_ms)) - 1]
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
