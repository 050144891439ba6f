"""Let go: what items waited for has ended. The last end makes them ready, or delayed as they were
added; one that is dead makes them dead letters, too, so that nothing waits for ever.

An end leaves a note in the write that makes it. This is the duty that reads the notes in their
order, a slice of the items at a time. It moves items and deletes what they waited for in one write.
"""

from queueber.db.families import Family
from queueber.db.records.attempts import Failed, History, encode_attempts
from queueber.db.records.cutting import join_entries, singles
from queueber.db.records.keys import NEVER_MS, PREFIX_BYTES
from queueber.db.records.runs import (
    Entry,
    Run,
    as_dead,
    decode_mark,
    encode_mark,
    entry_at,
    mark_expires,
)
from queueber.db.records.waits import (
    AFTER_ANY_WAITER,
    DEAD,
    Note,
    Wait,
    decode_note,
    decode_wait,
    encode_note,
    encode_wait,
    note_key,
    split_waited_for,
    split_what,
)
from queueber.engine.kernel.due_scan import Done
from queueber.engine.queue.cancel import take_waiting
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.lifecycle import DeathReason, State
from queueber.engine.queue.options import end_expiry, options_of
from queueber.engine.queue.places import put_delayed
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.records.batches import Side
from queueber.errors import invariant
from queueber.ids import ItemId
from queueber.model import AttemptEnd

CAME_AFTER = "it was to come after "
"""What the error of an item begins with that has waited for what is dead."""
Ended = dict[ItemId, dict[bytes, None]]
"""Items that wait, each with what has ended of what it waits for, in the order of the ends."""


def let_go_due_ms(queue: QueueState, now_ms: int) -> int:
    return now_ms if queue.counters.waits_due else NEVER_MS


def let_go(tx: QueueTx, items_max: int) -> Done:
    """Let go some of those who wait for what the first notes are about; of notes that follow each
    other and tell of one kind of end."""
    counters = tx.counters
    number = counters.last_note - counters.waits_due + 1
    outcome = b""
    ended: Ended = {}
    left = items_max
    while left and counters.waits_due:
        note = _read(tx, number)
        if outcome not in (b"", note.outcome):
            break
        outcome = note.outcome
        entries, go_on = _waiters(tx, note, left)
        for what, waiter in entries:
            ended.setdefault(waiter, {})[what] = None
        left -= len(entries) or 1
        key = tx.prefix + note_key(number)
        if go_on:
            tx.batch.put(Family.WAITED_FOR, key, encode_note(note._replace(first=go_on)))
            break
        tx.batch.delete(Family.WAITED_FOR, key)
        counters.waits_due -= 1
        number += 1
    if ended and outcome == DEAD:
        _die(tx, ended)
    elif ended:
        _go(tx, ended)
    return Done(len(ended))


def _read(tx: QueueTx, number: int) -> Note:
    value = tx.store.get(Family.WAITED_FOR, tx.prefix + note_key(number))
    invariant(value is not None, "I25", queue=tx.queue.name, note=number)
    return decode_note(value or b"")


def _waiters(tx: QueueTx, note: Note, limit: int) -> tuple[list[tuple[bytes, ItemId]], bytes]:
    """Up to `limit` of those whom a note is about, each with what it waits for; and with what to go
    on: empty if these are all."""
    prefix = tx.prefix
    start, stop = prefix + note.first, prefix + note.last + AFTER_ANY_WAITER
    found: list[tuple[bytes, ItemId]] = []
    while True:
        entries = tx.store.scan(Family.WAITED_FOR, start, stop, limit)
        for key, _ in entries:
            what, waiter = split_waited_for(key[PREFIX_BYTES:])
            if waiter <= note.newest:  # others began to wait later
                found.append((what, waiter))
                if len(found) == limit:
                    return found, what
        if len(entries) < limit:
            return found, b""
        start = entries[-1][0] + b"\0"


def _go(tx: QueueTx, ended: Ended) -> None:
    """These wait no longer for so much: those that wait for nothing more are let go."""
    prefix = tx.prefix
    entries_of = [what + waiter for waiter, whats in ended.items() for what in whats]
    tx.batch.delete_many(Family.WAITED_FOR, [prefix + each for each in entries_of])
    free: dict[ItemId, int] = {}
    stored = tx.store.get_many(Family.WAITS, [prefix + waiter for waiter in ended])
    for (waiter, whats), value in zip(ended.items(), stored, strict=True):
        wait = _wait(tx, waiter, value)
        left = [each for each in wait.whats if each not in whats]
        if left:
            tx.batch.put(Family.WAITS, prefix + waiter, encode_wait(wait.delay_ms, left))
        else:
            free[waiter] = wait.delay_ms
            tx.batch.delete(Family.WAITS, prefix + waiter)
    tx.counters.waiting -= len(free)
    entries: dict[bool, list[Entry]] = {True: [], False: []}
    for run in _take(tx, list(free), is_single=len(set(free.values())) > 1):
        delay_ms = free[run.last]
        entries[delay_ms == 0].append(entry_at(tx.now_ms + delay_ms, run))
    if ready := entries[True]:
        tx.queue.ready.put(tx, join_entries(ready))
    if delayed := entries[False]:
        put_delayed(tx, join_entries(delayed))


def _die(tx: QueueTx, ended: Ended) -> None:
    """These have waited for what is dead. That counts as an attempt, whose error names it."""
    queue = tx.queue
    dead: list[Run] = []
    moves: list[Moved] = []
    items = _take(tx, list(ended), is_single=True)
    if expiring := [item for item in items if mark_expires(item.mark)]:
        end_expiry(tx, options_of(tx, expiring).items())
    for item in items:
        error = CAME_AFTER + _name(tx, next(iter(ended[item.last])))
        mark = as_dead(encode_mark(decode_mark(item.mark)._replace(attempts=1)))
        dead.append(item._replace(mark=mark))
        attempts = encode_attempts(History([tx.now_ms], [Failed(AttemptEnd.FAILED, error)]))
        tx.batch.put(Family.ATTEMPTS, tx.prefix + item.last, attempts)
        moves.append(Moved(Change.DEAD, item, State.DELAYED, State.DEAD, mark, error=error))
    if queue.changes is not None:
        queue.changes.moved(tx, moves)
    tx.counters.failed_total += len(dead)
    queue.dead_letters.put(tx, dead, DeathReason.AWAITED.value)
    queue.batches.count_ended(tx, dead, Side.DEAD)


def _take(tx: QueueTx, waiters: list[ItemId], *, is_single: bool) -> list[Run]:
    """Take items that wait out of the family of delayed ones."""
    ready, runs = take_waiting(tx, waiters)
    count = sum([run.count for run in runs])
    invariant(not ready and count == len(waiters), "I25", queue=tx.queue.name, items=len(waiters))
    if not is_single:
        return runs
    blocks = tx.queue.blocks.reader()
    return [each for run in runs for each in singles(run, blocks.sizes(run))]


def _wait(tx: QueueTx, waiter: ItemId, value: bytes | None) -> Wait:
    invariant(value is not None, "I25", queue=tx.queue.name, item=waiter.hex())
    return decode_wait(value or b"")


def _name(tx: QueueTx, what: bytes) -> str:
    item_id, number = split_what(what)
    if item_id is not None:
        return f"item {item_id.hex()}, which died or was cancelled"
    name = tx.queue.batches.names.name(number)
    return f"batch {name!r}, which was forgotten" if name else "a batch that was forgotten"
