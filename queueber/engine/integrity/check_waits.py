"""The check of items that wait for others (I25), and their repair."""

from collections import Counter
from collections.abc import Iterator, Mapping

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import AWAITING_MS, time_part
from queueber.db.records.queues import Counters
from queueber.db.records.remembered import BatchRecord, batch_number_part, decode_batch
from queueber.db.records.runs import decode_entry
from queueber.db.records.waits import (
    DEAD,
    DONE,
    NOTES,
    Note,
    decode_note,
    decode_wait,
    encode_note,
    encode_wait,
    item_what,
    note_key,
    note_number,
    split_waited_for,
    split_what,
)
from queueber.engine.integrity.queue_entries import (
    CheckedQueue,
    QueueEntries,
    QueueWrites,
    Violation,
    readable,
)
from queueber.engine.integrity.stored_blocks import BlockCache
from queueber.ids import ItemId
from queueber.limits import ID_BYTES

_NOBODY = ItemId(bytes(ID_BYTES))
"""An item that has ended: what a repaired item waits for that has lost its record."""


def check_waits(queue: CheckedQueue) -> Iterator[Violation]:
    """I25. Of a queue in which nobody waits it reads nothing but where the records would be."""
    entries, counters = queue.entries, queue.counters
    waiters = 0
    for item_id in _delayed_for_ever(entries):
        waiters += 1
        if entries.get(Family.WAITS, item_id) is None:
            yield queue.broken("I25", f"{item_id.hex()} is delayed for ever and waits for nothing")
    records = pairs = 0
    for waiter, value in entries.walk(Family.WAITS):
        records += 1
        for what in decode_wait(value).whats:
            pairs += 1
            if entries.get(Family.WAITED_FOR, what + waiter) is None:
                yield queue.broken("I25", f"nothing says that {waiter.hex()} waits")
    stored = entries.walk(Family.WAITED_FOR, NOTES)
    notes = {note_number(key): decode_note(value) for key, value in stored}
    yield from _check_notes(queue, notes)
    live, found = Live(entries), 0
    last, is_live = b"", True
    for key, _ in entries.walk(Family.WAITED_FOR):
        if key >= NOTES:
            break
        found += 1
        what, waiter = split_waited_for(key)
        if what != last:
            last, is_live = what, live.has(what)
        if not is_live and not any(note.is_about(what, waiter) for note in notes.values()):
            yield queue.broken("I25", f"somebody waits for {what.hex()}, which is not live")
    counted = (counters.waiting, counters.waits_due)
    if (waiters, found) != (records, pairs) or (records, len(notes)) != counted:
        text = f"{waiters} items wait, {records} records, {found} of {pairs} entries"
        yield queue.broken("I25", f"{text}, {len(notes)} notes, but {counted} counted")


def _check_notes(queue: CheckedQueue, notes: Mapping[int, Note]) -> Iterator[Violation]:
    counters = queue.counters
    due = range(counters.last_note - counters.waits_due + 1, counters.last_note + 1)
    if list(notes) != list(due):
        yield queue.broken("I25", f"notes {list(notes)} are to be read, but {due} counted")
    for number, note in notes.items():
        if note.newest > counters.last_id:
            yield queue.broken("I25", f"note {number} is about items that are to come")


class Live:
    """Whether what is waited for is still to end."""

    def __init__(self, entries: QueueEntries) -> None:
        self._entries = entries
        self._blocks = BlockCache(entries)

    def has(self, what: bytes) -> bool:
        item_id, number = split_what(what)
        if item_id is not None:
            return self._has_item(item_id) and not self.is_dead(item_id)
        stored = self._entries.get(Family.BATCHES, batch_number_part(number))
        batch = None if stored is None else readable(decode_batch, stored)
        return batch is not None and not (batch.has_ended and batch.added > 0)

    def _has_item(self, item_id: ItemId) -> bool:
        found = self._entries.scan(Family.ITEMS, item_id, 1)
        if not found:
            return False
        block = ItemId(found[0][0])
        self._blocks.fetch([block])
        stored = self._blocks[block]
        at = None if stored is None else stored.position_of(item_id)
        return stored is not None and at is not None and bool(stored.left >> at & 1)

    def is_dead(self, item_id: ItemId) -> bool:
        found = self._entries.scan(Family.DEAD, item_id, 1)
        return bool(found) and decode_dead(*found[0])[2].position_of(item_id) is not None


def rebuild_waits(
    entries: QueueEntries, batches: Mapping[int, BatchRecord], counters: Counters
) -> Counter[str]:
    """Write again who waits for what. An item whose record is lost waits for nothing: it is let go
    at the next sweep. What was lost, and how often."""
    lost: Counter[str] = Counter()
    writes = QueueWrites(entries)
    for key, _ in entries.walk(Family.WAITED_FOR):
        writes.delete(Family.WAITED_FOR, key)
    waiting = set(_delayed_for_ever(entries))
    for key, value in entries.walk(Family.WAITS):
        if ItemId(key) not in waiting or readable(decode_wait, value) is None:
            writes.delete(Family.WAITS, key)
    writes.flush()
    counters.waiting, notes = len(waiting), dict[bytes, Note]()
    newest, live = max(waiting, default=_NOBODY), Live(entries)
    for item_id in sorted(waiting):
        stored = entries.get(Family.WAITS, item_id)
        if stored is None:
            lost["records of what an item waits for: it waits no more"] += 1
            stored = encode_wait(0, [item_what(_NOBODY)])
            writes.put(Family.WAITS, item_id, stored)
        for what in decode_wait(stored).whats:
            writes.put(Family.WAITED_FOR, what + item_id, b"")
            if not live.has(what):
                notes[what] = Note(_end_of(live, batches, what), what, what, newest)
    for number, note in enumerate(notes.values(), 1):
        writes.put(Family.WAITED_FOR, note_key(number), encode_note(note))
    writes.flush()
    counters.last_note = counters.waits_due = len(notes)
    return lost


def _end_of(live: Live, batches: Mapping[int, BatchRecord], what: bytes) -> bytes:
    item_id, number = split_what(what)
    if item_id is None:
        return DONE if number in batches else DEAD
    return DEAD if live.is_dead(item_id) else DONE


def _delayed_for_ever(entries: QueueEntries) -> Iterator[ItemId]:
    for key, value in entries.walk(Family.DELAYED, time_part(AWAITING_MS)):
        yield from decode_entry(key, value)[1].ids
