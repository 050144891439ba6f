"""A change: entries, counters, places and windows move together, and only when it is written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.batches import BatchRecord, decode_batch
from queueber.db.records.counters import decode_counters
from queueber.db.records.keys import NEVER_MS, due_part, level_part
from queueber.db.records.log import LogHead
from queueber.db.records.marks import MarkFields, encode_mark, plain_mark
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.ready_window import Entry
from queueber.errors import InvariantViolation, Unavailable
from queueber.ids import made_at_ms
from tests.support.rig import START_MS, Rig, assert_window_is_the_front_of_the_index, refuse_write

LEVEL = 4


@pytest.fixture
def ids(rig: Rig) -> list[bytes]:
    """Ids of this millisecond that nothing has yet."""
    return rig.engine.ids.mint(10, rig.now_ms)


def change_of(rig: Rig) -> Change:
    return Change(rig.engine, rig.queue)


def entry(item_id: bytes, later_ms: int = 0, priority: int = 5) -> Entry:
    return due_part(START_MS + later_ms, item_id), encode_mark(MarkFields(1, priority=priority))


def index(rig: Rig) -> list[tuple[int, bytes]]:
    """Levels and ids of the index of ready items, in order."""
    return [(key[4], key[-16:]) for key in rig.keys(Family.VISIBILITY_INDEX)]


def test_make_ready_puts_each_entry_into_its_level(rig: Rig, ids: list[bytes]) -> None:
    change = change_of(rig)

    change.make_ready([entry(ids[0]), entry(ids[1], priority=9), entry(ids[2])])
    change.commit()

    assert index(rig) == [(0, ids[1]), (LEVEL, ids[0]), (LEVEL, ids[2])]
    assert rig.queue.counters.ready == 3
    assert rig.queue.counters.levels == {
        0: (1, entry(ids[1])[0]),
        LEVEL: (2, entry(ids[0])[0]),
    }
    assert list(rig.queue.windows[LEVEL].entries) == [entry(ids[0]), entry(ids[2])]
    assert_window_is_the_front_of_the_index(rig)


def test_make_ready_before_the_low_mark_lowers_it(rig: Rig, ids: list[bytes]) -> None:
    for later_ms in (10, 20, 5):
        change = change_of(rig)
        change.make_ready([entry(ids[later_ms % 7], later_ms)])
        change.commit()

    count, low = rig.queue.counters.levels[LEVEL]
    assert (count, low) == (3, entry(ids[5], 5)[0])
    assert_window_is_the_front_of_the_index(rig)


def test_draw_ready_raises_the_low_mark_and_an_empty_level_is_forgotten(
    rig: Rig, ids: list[bytes]
) -> None:
    entries = [entry(each) for each in ids[:3]]
    change = change_of(rig)
    change.make_ready(entries)
    change.commit()

    change = change_of(rig)
    change.draw_ready(LEVEL, entries[:2])
    change.commit()
    assert rig.queue.counters.levels == {LEVEL: (1, entries[1][0])}
    assert list(rig.queue.windows[LEVEL].entries) == entries[2:]

    change = change_of(rig)
    change.draw_ready(LEVEL, entries[2:])
    change.commit()
    assert (rig.queue.counters.levels, rig.queue.windows) == ({}, {})
    assert index(rig) == []


def test_drop_ready_takes_entries_out_of_the_middle(rig: Rig, ids: list[bytes]) -> None:
    entries = [entry(each) for each in ids[:4]]
    change = change_of(rig)
    change.make_ready(entries)
    change.commit()

    change = change_of(rig)
    change.drop_ready(LEVEL, [entries[1], entries[3]])
    change.commit()

    assert index(rig) == [(LEVEL, ids[0]), (LEVEL, ids[2])]
    assert rig.queue.counters.levels == {LEVEL: (2, entries[0][0])}
    assert_window_is_the_front_of_the_index(rig)


def test_make_delayed_has_the_queue_looked_at_when_the_first_is_due(
    rig: Rig, ids: list[bytes]
) -> None:
    change = change_of(rig)

    change.make_delayed([entry(ids[0], 90), entry(ids[1], 30)])
    change.commit()

    counters = rig.queue.counters
    assert (counters.delayed, counters.delayed_due_ms) == (2, START_MS + 30)
    assert rig.engine.agenda.next_ms() == START_MS + 30


def test_place_is_kept_exactly_while_it_is_needed(rig: Rig, ids: list[bytes]) -> None:
    """An item at the time of its own id is found without one."""
    assert made_at_ms(ids[0]) == START_MS
    here, there = entry(ids[0]), entry(ids[1], 7)
    change = change_of(rig)
    change.make_ready([here, there])
    change.commit()
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[1], (START_MS + 7).to_bytes(8))]

    change = change_of(rig)
    change.drop_ready(LEVEL, [here, there])
    change.make_delayed([entry(ids[0], 50)])
    change.commit()
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[0], (START_MS + 50).to_bytes(8))]

    change = change_of(rig)
    change.drop_delayed([entry(ids[0], 50)], stay_placed=True)
    change.make_ready([entry(ids[0], 50)], is_placed=True)
    change.commit()
    assert rig.dump()["places"] == [(rig.queue.prefix + ids[0], (START_MS + 50).to_bytes(8))]


def test_batch_record_is_read_once_changed_in_place_and_written(rig: Rig) -> None:
    change = change_of(rig)
    change.add_batch(3, BatchRecord("b", added=5))
    assert change.batch_record(3) is change.batch_record(3)
    change.commit()

    change = change_of(rig)
    change.batch_record(3).done += 5
    change.commit()

    ((_, value),) = rig.dump()["batches"]
    assert decode_batch(value) == BatchRecord("b", added=5, done=5)
    assert rig.queue.finished_batches == {"b"}
    with pytest.raises(InvariantViolation, match="I10"):
        change_of(rig).batch_record(4)


def test_commit_writes_the_counters_and_takes_them_into_memory(rig: Rig) -> None:
    before = rig.queue.counters
    change = change_of(rig)
    change.counters.removed_total += 7
    assert rig.queue.counters is before
    assert before.removed_total == 0

    change.commit()

    stored = rig.store.get(Family.COUNTERS, rig.queue.prefix)
    assert decode_counters(stored or b"") == rig.queue.counters == change.counters


def test_commit_that_is_refused_leaves_memory_alone(
    rig: Rig, ids: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    change = change_of(rig)
    change.make_ready([entry(ids[0])])
    change.commit()
    disk, memory = rig.dump(), rig.memory()
    change = change_of(rig)
    change.draw_ready(LEVEL, [entry(ids[0])])
    change.make_ready([entry(ids[1], priority=9)])
    change.make_delayed([entry(ids[2], 50)])
    change.add_batch(1, BatchRecord("b"))
    change.log_head = LogHead(1, 2, 3, 4)
    change.look_at(START_MS + 1)
    monkeypatch.setattr(rig.store, "write", refuse_write)

    with pytest.raises(Unavailable):
        change.commit()

    assert rig.dump() == disk
    assert rig.memory() == memory
    assert rig.queue.finished_batches == set()


def test_look_at_takes_the_earliest_and_nothing_means_never(rig: Rig) -> None:
    change_of(rig).commit()
    assert rig.engine.agenda.next_ms() == NEVER_MS

    change = change_of(rig)
    for due_ms in (300, 100, 200):
        change.look_at(due_ms)
    change.commit()

    assert rig.engine.agenda.next_ms() == 100


numbers = st.sets(st.integers(0, 9), min_size=1)


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.tuples(numbers, st.integers(0, 3), st.booleans()), max_size=12))
def test_changes_of_any_kind_keep_windows_counters_and_index_together(
    steps: list[tuple[set[int], int, bool]],
) -> None:
    """Each step takes out what is ready of some items, and puts in what is not."""
    rig = Rig()
    try:
        ids = rig.engine.ids.mint(10, rig.now_ms)
        ready: dict[int, Entry] = {}
        for chosen, later_ms, is_high in steps:
            change = change_of(rig)
            for at in sorted(chosen & set(ready)):
                old = ready.pop(at)
                change.drop_ready(0 if old[1][12] == 9 else LEVEL, [old])
            new = {at: entry(ids[at], later_ms, 9 if is_high else 5) for at in chosen - set(ready)}
            change.make_ready(sorted(new.values()))
            ready |= new
            change.commit()

            assert_window_is_the_front_of_the_index(rig)
            assert rig.queue.counters.ready == len(ready) == len(index(rig))
            places = [at for at, (due, _) in ready.items() if due[:8] != START_MS.to_bytes(8)]
            assert [key[4:] for key in rig.keys(Family.PLACES)] == [
                ids[at] for at in sorted(places)
            ]
    finally:
        rig.close()


def test_levels_begin_with_their_byte(rig: Rig, ids: list[bytes]) -> None:
    change = change_of(rig)
    change.make_ready_at(7, [(due_part(START_MS, ids[0]), plain_mark(1))])
    change.commit()

    assert rig.keys(Family.VISIBILITY_INDEX) == [
        rig.queue.prefix + level_part(7) + due_part(START_MS, ids[0])
    ]
