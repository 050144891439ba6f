"""A transaction: everything moves together, memory too, and only when it is written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, due_part, level_part
from queueber.db.records.queues import decode_counters
from queueber.db.records.runs import Entry, MarkFields, encode_run, mark_level
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import append
from queueber.engine.queue.add import add
from queueber.engine.queue.places import put_delayed, take_delayed
from queueber.engine.queue.queue_state import QueueTx
from queueber.errors import Unavailable
from queueber.ids import ItemId, made_at_ms
from queueber.model import NewItems, QueueSettings
from tests.engine.making import run_of
from tests.support.operations import create_queue
from tests.support.rig import START_MS, Rig, assert_window_is_the_front_of_the_index, refuse_write

LEVEL = 4


@pytest.fixture
def ids(rig: Rig) -> list[ItemId]:
    """Ids of this millisecond that nothing has yet."""
    return rig.engine.ids.mint(10, rig.now_ms)


def open_tx(rig: Rig) -> QueueTx:
    return Transaction(rig.engine.kernel, rig.now_ms, rig.queue)


def entry(item_id: bytes, later_ms: int = 0, priority: int = 5) -> Entry:
    run = run_of([item_id], 1, MarkFields(priority=priority))
    return due_part(START_MS + later_ms, item_id), run


def index(rig: Rig) -> list[tuple[int, bytes]]:
    """Levels and ids of the index of ready items, in order."""
    return [(key[4], key[-16:]) for key in rig.keys(Family.VISIBILITY_INDEX)]


def test_make_ready_puts_each_entry_into_its_level(rig: Rig, ids: list[ItemId]) -> None:
    tx = open_tx(rig)

    rig.queue.ready.put(tx, [entry(ids[0]), entry(ids[1], priority=9), entry(ids[2])])
    tx.commit()

    assert index(rig) == [(0, ids[1]), (LEVEL, ids[0]), (LEVEL, ids[2])]
    assert rig.queue.counters.ready == 3
    assert rig.queue.counters.levels == {
        0: (1, entry(ids[1])[0]),
        LEVEL: (2, entry(ids[0])[0]),
    }
    assert list(rig.queue.ready.windows[LEVEL].entries) == [entry(ids[0]), entry(ids[2])]
    assert_window_is_the_front_of_the_index(rig)


def test_make_ready_before_the_low_mark_lowers_it(rig: Rig, ids: list[ItemId]) -> None:
    for later_ms in (10, 20, 5):
        tx = open_tx(rig)
        rig.queue.ready.put(tx, [entry(ids[later_ms % 7], later_ms)])
        tx.commit()

    count, low = rig.queue.counters.levels[LEVEL]
    assert (count, low) == (3, entry(ids[5], 5)[0])
    assert_window_is_the_front_of_the_index(rig)


def test_draw_ready_raises_the_low_mark_and_an_empty_level_is_forgotten(
    rig: Rig, ids: list[ItemId]
) -> None:
    entries = [entry(each) for each in ids[:3]]
    tx = open_tx(rig)
    rig.queue.ready.put(tx, entries)
    tx.commit()

    tx = open_tx(rig)
    rig.queue.ready.take_first(tx, LEVEL, entries[:2])
    tx.commit()
    assert rig.queue.counters.levels == {LEVEL: (1, entries[1][0])}
    assert list(rig.queue.ready.windows[LEVEL].entries) == entries[2:]

    tx = open_tx(rig)
    rig.queue.ready.take_first(tx, LEVEL, entries[2:])
    tx.commit()
    assert (rig.queue.counters.levels, rig.queue.ready.windows) == ({}, {})
    assert index(rig) == []


def test_drop_ready_takes_entries_out_of_the_middle(rig: Rig, ids: list[ItemId]) -> None:
    entries = [entry(each) for each in ids[:4]]
    tx = open_tx(rig)
    rig.queue.ready.put(tx, entries)
    tx.commit()

    tx = open_tx(rig)
    rig.queue.ready.take_some(tx, LEVEL, entries[1], [])
    rig.queue.ready.take_some(tx, LEVEL, entries[3], [])
    tx.commit()

    assert index(rig) == [(LEVEL, ids[0]), (LEVEL, ids[2])]
    assert rig.queue.counters.levels == {LEVEL: (2, entries[0][0])}
    assert_window_is_the_front_of_the_index(rig)


def test_drop_ready_of_some_items_of_a_run_keeps_the_others_in_its_place(
    rig: Rig, ids: list[ItemId]
) -> None:
    whole = run_of(ids, 10)
    left = [run_of(ids[:2], 2, span=10), run_of(ids[7:], 3, at=7)]
    after = entry(rig.engine.ids.mint(1, rig.now_ms)[0], 9)
    tx = open_tx(rig)
    rig.queue.ready.put(tx, [(due_part(START_MS + 3, ids[9]), whole), after])
    tx.commit()

    tx = open_tx(rig)
    rig.queue.ready.take_some(tx, LEVEL, (due_part(START_MS + 3, ids[9]), whole), left)
    tx.commit()

    kept = [(due_part(START_MS + 3, run.last), run) for run in left]
    head = rig.queue.prefix + level_part(LEVEL)
    assert rig.dump()["visibility_index"] == [
        (head + due, encode_run(run)) for due, run in (*kept, after)
    ]
    assert rig.queue.counters.levels == {LEVEL: (6, kept[0][0])}
    assert rig.dump()["places"] == [
        (rig.queue.prefix + ids[1], (START_MS + 3).to_bytes(8)),
        (rig.queue.prefix + ids[9], (START_MS + 3).to_bytes(8)),
        (rig.queue.prefix + after[1].last, (START_MS + 9).to_bytes(8)),
    ]
    assert_window_is_the_front_of_the_index(rig)


def test_draw_ready_of_the_first_items_of_a_run_leaves_its_key_and_place(
    rig: Rig, ids: list[ItemId]
) -> None:
    whole, rest = run_of(ids, 10), run_of(ids[4:], 6, at=4)
    due = due_part(START_MS + 3, ids[9])
    before = entry(rig.engine.ids.mint(1, rig.now_ms)[0])
    tx = open_tx(rig)
    rig.queue.ready.put(tx, [before, (due, whole)])
    tx.commit()

    tx = open_tx(rig)
    rig.queue.ready.take_first(tx, LEVEL, [before, (due, whole)], rest)
    tx.commit()

    head = rig.queue.prefix + level_part(LEVEL)
    assert rig.dump()["visibility_index"] == [(head + due, encode_run(rest))]
    assert rig.queue.counters.levels == {LEVEL: (6, due)}
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[9], (START_MS + 3).to_bytes(8))]
    assert_window_is_the_front_of_the_index(rig)


def test_make_delayed_has_the_queue_looked_at_when_the_first_is_due(
    rig: Rig, ids: list[ItemId]
) -> None:
    tx = open_tx(rig)

    put_delayed(tx, [entry(ids[1], 30), entry(ids[0], 90)])
    tx.commit()

    counters = rig.queue.counters
    assert (counters.delayed, counters.delayed_due_ms) == (2, START_MS + 30)
    assert rig.engine.agenda.next_ms() == START_MS + 30


def test_place_is_kept_exactly_while_it_is_needed(rig: Rig, ids: list[ItemId]) -> None:
    """An item at the time of its own id is found without one."""
    assert made_at_ms(ids[0]) == START_MS
    here, there = entry(ids[0]), entry(ids[1], 7)
    tx = open_tx(rig)
    rig.queue.ready.put(tx, [here, there])
    tx.commit()
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[1], (START_MS + 7).to_bytes(8))]

    tx = open_tx(rig)
    rig.queue.ready.take_some(tx, LEVEL, here, [])
    rig.queue.ready.take_some(tx, LEVEL, there, [])
    put_delayed(tx, [entry(ids[0], 50)])
    tx.commit()
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[0], (START_MS + 50).to_bytes(8))]

    tx = open_tx(rig)
    take_delayed(tx, [entry(ids[0], 50)], stay_placed=True)
    rig.queue.ready.put(tx, [entry(ids[0], 50)], is_placed=True)
    tx.commit()
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[0], (START_MS + 50).to_bytes(8))]


def test_what_is_gathered_is_encoded_once_and_memory_follows_in_order(rig: Rig) -> None:
    told: list[str] = []
    tx = open_tx(rig)
    tx.after_write(told.append, "first")
    tx.before_write(told.append, "encoded")
    tx.after_write(told.append, "second")
    tx.batch.put(Family.DEFAULT, b"fact", b"1")
    assert told == []

    tx.commit()

    assert told == ["encoded", "first", "second"]


def test_transaction_of_two_queues_and_a_log_is_written_as_one(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    other = rig.engine.queues.get("other")
    tx = open_tx(rig)
    joined = tx.join(other)
    (one,) = add(tx, NewItems([b"a"])).ids
    (two,) = add(joined, NewItems([b"b"], delays_ms=[70])).ids
    append(tx, rig.queue.results, [b"row"])
    before = rig.dump()

    tx.commit()

    assert before["items"] == []
    assert rig.keys(Family.ITEMS) == [rig.queue.prefix + one, other.prefix + two]
    assert (rig.queue.counters.ready, other.counters.delayed) == (1, 1)
    assert rig.queue.results.head.next_offset == 1
    assert rig.engine.agenda.due_ms(other.queue_id) == rig.now_ms + 70
    assert decode_counters(rig.store.get(Family.COUNTERS, other.prefix) or b"") == other.counters


def test_transaction_of_two_queues_that_is_refused_changes_neither(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    disk, memory = rig.dump(), rig.memory()
    tx = open_tx(rig)
    add(tx, NewItems([b"a"]))
    add(tx.join(rig.engine.queues.get("other")), NewItems([b"b"]))
    monkeypatch.setattr(rig.store, "write", refuse_write)

    with pytest.raises(Unavailable):
        tx.commit()

    assert (rig.dump(), rig.memory()) == (disk, memory)


def test_transaction_without_a_change_writes_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig.store, "write", refuse_write)

    open_tx(rig).commit()


def test_low_water_marks_alone_are_kept_in_memory_until_the_next_write(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "write", refuse_write)
        tx = open_tx(rig)
        tx.counters.lease_due_ms = START_MS + 5
        tx.commit()
    assert rig.queue.counters.lease_due_ms == START_MS + 5

    rig.add(b"a")

    stored = decode_counters(rig.store.get(Family.COUNTERS, rig.queue.prefix) or b"")
    assert stored.lease_due_ms == START_MS + 5


def test_commit_writes_the_counters_and_takes_them_into_memory(rig: Rig) -> None:
    before = rig.queue.counters
    tx = open_tx(rig)
    tx.counters.removed_total += 7
    assert rig.queue.counters is before
    assert before.removed_total == 0

    tx.commit()

    stored = rig.store.get(Family.COUNTERS, rig.queue.prefix)
    assert decode_counters(stored or b"") == rig.queue.counters == tx.counters


def test_commit_that_is_refused_leaves_memory_alone(
    rig: Rig, ids: list[ItemId], monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = open_tx(rig)
    rig.queue.ready.put(tx, [entry(ids[0])])
    tx.commit()
    disk, memory = rig.dump(), rig.memory()
    tx = open_tx(rig)
    rig.queue.ready.take_first(tx, LEVEL, [entry(ids[0])])
    rig.queue.ready.put(tx, [entry(ids[1], priority=9)])
    put_delayed(tx, [entry(ids[2], 50)])
    append(tx, rig.queue.results, [b"row"])
    rig.queue.batches.open(tx, "b")
    tx.due(START_MS + 1)
    monkeypatch.setattr(rig.store, "write", refuse_write)

    with pytest.raises(Unavailable):
        tx.commit()

    assert rig.dump() == disk
    assert rig.memory() == memory
    assert rig.queue.batches.finished == set()


def test_look_at_takes_the_earliest_and_nothing_means_never(rig: Rig) -> None:
    open_tx(rig).commit()
    assert rig.engine.agenda.next_ms() == NEVER_MS

    tx = open_tx(rig)
    for due_ms in (300, 100, 200):
        tx.due(due_ms)
    tx.commit()

    assert rig.engine.agenda.next_ms() == 100


numbers = st.sets(st.integers(0, 9), min_size=1)


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.tuples(numbers, st.integers(0, 3), st.booleans()), max_size=12))
def test_transactions_of_any_kind_keep_windows_counters_and_index_together(
    steps: list[tuple[set[int], int, bool]],
) -> None:
    """Each step takes out what is ready of some items, and puts in what is not."""
    rig = Rig()
    try:
        ids = rig.engine.ids.mint(10, rig.now_ms)
        ready: dict[int, Entry] = {}
        for chosen, later_ms, is_high in steps:
            tx = open_tx(rig)
            for at in sorted(chosen & set(ready)):
                old = ready.pop(at)
                rig.queue.ready.take_some(tx, mark_level(old[1].mark), old, [])
            new = {at: entry(ids[at], later_ms, 9 if is_high else 5) for at in chosen - set(ready)}
            rig.queue.ready.put(tx, sorted(new.values()))
            ready |= new
            tx.commit()

            assert_window_is_the_front_of_the_index(rig)
            assert rig.queue.counters.ready == len(ready) == len(index(rig))
            places = [at for at, (due, _) in ready.items() if due[:8] != START_MS.to_bytes(8)]
            assert [key[4:] for key in rig.keys(Family.PLACES)] == [
                ids[at] for at in sorted(places)
            ]
    finally:
        rig.close()


def test_levels_begin_with_their_byte(rig: Rig, ids: list[ItemId]) -> None:
    tx = open_tx(rig)
    rig.queue.ready.put(tx, [entry(ids[0], priority=2)])
    tx.commit()

    assert rig.keys(Family.VISIBILITY_INDEX) == [
        rig.queue.prefix + level_part(7) + due_part(START_MS, ids[0])
    ]


def test_queue_that_is_joined_twice_or_through_another_has_one_part(rig: Rig) -> None:
    for name in ("other", "third"):
        create_queue(rig.engine, name, QueueSettings(), rig.now_ms)
    other, third = (rig.engine.queues.get(name) for name in ("other", "third"))
    tx = open_tx(rig)
    joined = tx.join(other)

    add(joined.join(third), NewItems([b"c"]))

    assert tx.join(other) is joined
    assert joined.join(rig.queue) is tx
    joined.commit()
    assert (third.counters.ready, other.counters.ready) == (1, 0)
    rig.assert_sound()
