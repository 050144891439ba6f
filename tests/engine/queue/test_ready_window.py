"""The window is always the front of the index, whatever came in which order."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import (
    Entry,
    due_part,
    level_part,
    queue_prefix,
)
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.queue.ready_index import ReadyWindow
from tests.support.entries import LOWEST_DUE, plain_mark
from tests.support.folders import quick_folder, remove_folder

ENTRIES_MAX = 4
LOW = LOWEST_DUE


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    folder = quick_folder()
    with RocksStore(folder / "data") as opened:
        yield opened
    remove_folder(folder)


@pytest.fixture(scope="module", autouse=True)
def small_windows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queueber.engine.queue.ready_index.READY_WINDOW_ENTRIES", ENTRIES_MAX)
        yield


def entry(number: int) -> Entry:
    return due_part(number, number.to_bytes(16)), plain_mark(number)


def write(store: Store, head: bytes, new: list[Entry]) -> None:
    batch = store.batch()
    batch.put_many(Family.VISIBILITY_INDEX, [(head + due, mark) for due, mark in new])
    store.write(batch)


def drop(store: Store, head: bytes, old: list[Entry]) -> None:
    batch = store.batch()
    batch.delete_many(Family.VISIBILITY_INDEX, [head + due for due, _ in old])
    store.write(batch)


queue_numbers = iter(range(1, 1_000_000))


def new_head() -> bytes:
    """What the keys of a level begin with that no other test uses."""
    return queue_prefix(next(queue_numbers)) + level_part(4)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert fresh"), st.sets(st.integers(0, 30), min_size=1, max_size=7)),
        st.tuples(st.just("insert"), st.sets(st.integers(0, 30), min_size=1, max_size=7)),
        st.tuples(st.just("take"), st.sets(st.integers(1, 6), min_size=1, max_size=1)),
        st.tuples(st.just("discard"), st.sets(st.integers(0, 30), min_size=1, max_size=7)),
        st.tuples(st.just("forget"), st.just({0})),
    ),
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(steps=steps)
def test_window_through_any_steps_is_the_front_of_the_index(
    store: Store, steps: list[tuple[str, set[int]]]
) -> None:
    head = new_head()
    window = ReadyWindow(is_complete=True)
    index: list[Entry] = []

    for step, numbers in steps:
        if step in {"insert", "insert fresh"}:
            new = sorted(each for each in map(entry, numbers) if each not in index)
            if not new:
                continue
            write(store, head, new)
            index = sorted(index + new)
            before, is_cached = len(window.entries), step == "insert fresh"
            window.insert(new, is_cached=is_cached)
            assert is_cached or len(window.entries) <= max(ENTRIES_MAX, before)
        elif step == "take":
            (count,) = numbers
            window.fill(store, head, LOW, count)
            taken = list(window.entries)[:count]
            assert taken == index[:count]
            drop(store, head, taken)
            window.drop_first(len(taken))
            index = index[len(taken) :]
        elif step == "discard":
            gone = [each for each in map(entry, numbers) if each in index]
            drop(store, head, gone)
            window.discard({due for due, _ in gone})
            index = [each for each in index if each not in gone]
        else:
            # As after a restart: nothing is known but that there may be entries.
            window = ReadyWindow(is_complete=False)
        front = list(window.entries)
        assert front == index[: len(front)]
        assert not window.is_complete or front == index

    drop(store, head, index)


def test_insert_on_both_sides_of_a_short_window_keeps_what_lies_behind_it_out(
    store: Store,
) -> None:
    """Entries that are on disk only lie between the window's last and what came in behind."""
    head = new_head()
    first = [entry(n) for n in (10, 20, 30, 40, 50, 60)]
    write(store, head, first)
    window = ReadyWindow(is_complete=True)
    window.insert(first)
    drop(store, head, first[:2])
    window.drop_first(2)

    window.insert([entry(25), entry(55)])

    assert list(window.entries) == [entry(25), entry(30), entry(40)]
    assert not window.is_complete


def test_fresh_entries_are_all_kept_and_others_do_not_push_them_out() -> None:
    window = ReadyWindow(is_complete=True)
    fresh = [entry(number) for number in range(10, 20)]

    window.insert(fresh, is_cached=True)
    assert (list(window.entries), window.is_complete) == (fresh, True)
    window.insert([entry(20), entry(21)])
    assert (list(window.entries), window.is_complete) == (fresh, False)


def test_fill_starts_at_the_low_mark(store: Store) -> None:
    """It must not walk over what was deleted before it."""
    head = new_head()
    write(store, head, [entry(1), entry(5)])
    window = ReadyWindow(is_complete=False)

    window.fill(store, head, entry(2)[0], 1)

    assert list(window.entries) == [entry(5)]


@pytest.mark.parametrize("is_next_queue", [False, True])
def test_fill_reads_no_entry_of_the_next_level_or_queue(store: Store, is_next_queue: bool) -> None:
    queue_id = next(queue_numbers)
    next(queue_numbers)
    head = queue_prefix(queue_id) + level_part(4)
    beside = queue_prefix(queue_id + is_next_queue) + level_part(0 if is_next_queue else 5)
    write(store, head, [entry(1)])
    write(store, beside, [entry(2)])
    window = ReadyWindow(is_complete=False)

    window.fill(store, head, LOW, 10)

    assert list(window.entries) == [entry(1)]
    assert window.is_complete
