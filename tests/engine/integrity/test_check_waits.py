"""Items that wait against the rule are reported, and repaired: nothing waits for ever."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from queueber.db.families import Family
from queueber.db.records.queues import encode_counters
from queueber.db.records.waits import (
    DONE,
    NOTES,
    Note,
    encode_note,
    encode_wait,
    item_what,
    note_key,
)
from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.model import NewItems
from tests.support.rig import Rig

UNKNOWN = b"\1" * 16


class Waiting:
    """An item that is live, one that waits for it, and one that waits for a batch."""

    def __init__(self) -> None:
        self.rig = Rig()
        (self.first,) = self.rig.add(b"x")
        self.rig.add_items(NewItems([b"y"], batch="b"))
        (self.waiter,) = self.rig.add_items(NewItems([b"z"], after=[self.first])).ids
        self.rig.add_items(NewItems([b"z"], after_batch="b"))


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    made = Waiting()
    yield made
    made.rig.close()


def _put(family: Family, key: bytes, value: bytes, w: Waiting, batch: Batch) -> None:
    batch.put(family, w.rig.queue.prefix + key, value)


def _lose_record(w: Waiting, batch: Batch) -> None:
    batch.delete(Family.WAITS, w.rig.queue.prefix + w.waiter)


def _lose_entry(w: Waiting, batch: Batch) -> None:
    batch.delete(Family.WAITED_FOR, w.rig.queue.prefix + item_what(w.first) + w.waiter)


def _wait_for_nobody(w: Waiting, batch: Batch) -> None:
    _lose_entry(w, batch)
    _put(Family.WAITS, w.waiter, encode_wait(0, [item_what(UNKNOWN)]), w, batch)
    _put(Family.WAITED_FOR, item_what(UNKNOWN) + w.waiter, b"", w, batch)


def _wait_while_ready(w: Waiting, batch: Batch) -> None:
    _put(Family.WAITS, w.first, encode_wait(0, [item_what(w.waiter)]), w, batch)
    _put(Family.WAITED_FOR, item_what(w.waiter) + w.first, b"", w, batch)


def _note(w: Waiting, batch: Batch, newest: bytes = UNKNOWN) -> None:
    note = Note(DONE, item_what(UNKNOWN), item_what(UNKNOWN), newest)
    _put(Family.WAITED_FOR, note_key(1), encode_note(note), w, batch)


def _count_notes(w: Waiting, batch: Batch, last: int) -> None:
    counters = w.rig.queue.counters.copy()
    counters.last_note, counters.waits_due = last, 1
    batch.put(Family.COUNTERS, w.rig.queue.prefix, encode_counters(counters))


def _note_of_items_to_come(w: Waiting, batch: Batch) -> None:
    _note(w, batch, b"\xff" * 16)
    _count_notes(w, batch, 1)


def _note_that_was_read(w: Waiting, batch: Batch) -> None:
    _note(w, batch)
    _count_notes(w, batch, 2)


def _unreadable_note(w: Waiting, batch: Batch) -> None:
    _put(Family.WAITED_FOR, note_key(1), b"\0", w, batch)


def _odd_note(w: Waiting, batch: Batch) -> None:
    _put(Family.WAITED_FOR, NOTES + bytes(32), b"\0", w, batch)


def _miscount(w: Waiting, batch: Batch) -> None:
    counters = w.rig.queue.counters.copy()
    counters.waiting += 1
    batch.put(Family.COUNTERS, w.rig.queue.prefix, encode_counters(counters))


def _unreadable(w: Waiting, batch: Batch) -> None:
    _put(Family.WAITS, w.waiter, b"\xff", w, batch)


def _wait_for_what_looks_like_a_note(w: Waiting, batch: Batch) -> None:
    what = NOTES + item_what(w.first)[1:]
    _put(Family.WAITS, w.waiter, encode_wait(0, [what]), w, batch)


@dataclass(frozen=True)
class Case:
    rule: str
    text: str
    damage: Callable[[Waiting, Batch], None]


CASES = [
    Case("I25", "is delayed for ever and waits for nothing", _lose_record),
    Case("I25", "nothing says that", _lose_entry),
    Case("I25", "which is not live", _wait_for_nobody),
    Case("I25", "2 items wait, 3 records", _wait_while_ready),
    Case("I25", "1 notes, but (2, 0) counted", _note),
    Case("I25", "0 notes, but (3, 0) counted", _miscount),
    Case("I25", "note 1 is about items that are to come", _note_of_items_to_come),
    Case("I25", "notes [1] are to be read, but range(2, 3) counted", _note_that_was_read),
    Case("I7", "cannot be read", _unreadable_note),
    Case("I7", "cannot be read", _odd_note),
    Case("I7", "cannot be read", _unreadable),
    Case("I7", "cannot be read", _wait_for_what_looks_like_a_note),
]


@pytest.mark.parametrize("case", CASES, ids=[case.damage.__name__ for case in CASES])
def test_damage_is_told_and_repaired(waiting: Waiting, case: Case) -> None:
    rig = waiting.rig
    assert check_store(rig.store) == []
    batch = rig.store.batch()
    case.damage(waiting, batch)
    rig.store.write(batch)

    found = check_store(rig.store)
    assert {each.rule for each in found} == {case.rule}
    assert any(case.text in each.text for each in found)
    list(rebuild_store(rig.store))

    assert check_store(rig.store) == []
    rig.reopen()
    rig.sweep_all()
    polled = rig.poll(2)
    rig.remove(polled.ids, polled.lease_id)
    rig.sweep_all()
    rest = rig.poll(9)
    rig.remove(rest.ids, rest.lease_id)
    assert rig.stats().delayed == rig.stats().ready == rig.stats().waiting == 0
    assert check_store(rig.store) == []
