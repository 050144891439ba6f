"""The window is always the front of the index, whatever came in which order."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.cutting import cut, pick
from queueber.db.records.keys import due_part, level_part, queue_prefix
from queueber.db.records.runs import Entry, Run, count_items, encode_run
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.queue.ready_index import ReadyWindow, Replaced
from tests.engine.making import run_of
from tests.support.entries import LOWEST_DUE
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


SPAN = 5
"""Items of an entry, if not said otherwise."""


class Sizes:
    """A block of items of a byte each."""

    def size(self, start: int, stop: int) -> int:
        return stop - start


def entry(number: int, count: int = SPAN) -> Entry:
    """The first entries have lower numbers, and each has the last items of a block."""
    ids = [(10 * number + n).to_bytes(16) for n in range(SPAN)]
    return due_part(number, ids[-1]), run_of(ids[-count:], count, at=SPAN - count)


def write(store: Store, head: bytes, new: list[Entry]) -> None:
    batch = store.batch()
    encoded = [(head + due, encode_run(run)) for due, run in new]
    batch.put_many(Family.VISIBILITY_INDEX, encoded)
    store.write(batch)


def drop(store: Store, head: bytes, old: list[Entry]) -> None:
    batch = store.batch()
    batch.delete_many(Family.VISIBILITY_INDEX, [head + due for due, _ in old])
    store.write(batch)


queue_numbers = iter(range(1, 1_000_000))


def new_head() -> bytes:
    """What the keys of a level begin with that no other test uses."""
    return queue_prefix(next(queue_numbers)) + level_part(4)


numbers = st.sets(st.integers(0, 30), min_size=1, max_size=7)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert fresh"), numbers),
        st.tuples(st.just("insert"), numbers),
        st.tuples(st.just("take"), st.integers(1, 30).map(lambda count: {count})),
        st.tuples(st.just("replace"), numbers),
        st.tuples(st.just("forget"), st.just({0})),
    ),
    max_size=25,
)


def take(index: list[Entry], items: int) -> tuple[list[Entry], Run | None]:
    """The first entries with so many items or all, and what is left of the last of them."""
    taken: list[Entry] = []
    for each in index:
        if items <= 0:
            break
        taken.append(each)
        items -= each[1].count
    if items >= 0:
        return taken, None
    return taken, cut(taken[-1][1], taken[-1][1].count + items, Sizes())[1]


def is_of(number: int, each: Entry) -> bool:
    return each[0][:8] == number.to_bytes(8)


@settings(max_examples=200, deadline=None)
@given(steps=steps, data=st.data())
def test_window_through_any_steps_is_the_front_of_the_index(
    store: Store, steps: list[tuple[str, set[int]]], data: st.DataObject
) -> None:
    head = new_head()
    window = ReadyWindow(is_complete=True)
    index: list[Entry] = []

    for step, numbers in steps:
        if step in {"insert", "insert fresh"}:
            absent = [n for n in numbers if not any(is_of(n, each) for each in index)]
            if not absent:
                continue
            new = [entry(n, data.draw(st.integers(1, SPAN))) for n in sorted(absent)]
            write(store, head, new)
            index = sorted(index + new)
            before, is_cached = len(window.entries), step == "insert fresh"
            window.insert(new, is_cached=is_cached)
            assert is_cached or len(window.entries) <= max(ENTRIES_MAX, before)
        elif step == "take":
            (count,) = numbers
            while (first := window.first(count)) is None:
                window.fill(store, head, LOW, count)
            taken, rest = take(index, count)
            assert first == taken
            if not taken:
                continue
            drop(store, head, taken)
            index = index[len(taken) :]
            if rest is not None:
                index.insert(0, (taken[-1][0], rest))
                write(store, head, index[:1])
            window.drop_first(len(taken), rest)
        elif step == "replace":
            replaced: Replaced = {}
            for due, run in [each for each in index if any(is_of(n, each) for n in numbers)]:
                gone = data.draw(st.sets(st.integers(0, run.count - 1), min_size=1))
                _, left = pick(run, sorted(gone), Sizes())
                kept: list[Entry] = [(due_part(int.from_bytes(due[:8]), r.last), r) for r in left]
                drop(store, head, [(due, run)])
                write(store, head, kept)
                replaced[due] = run, kept
                index = sorted([*[each for each in index if each != (due, run)], *kept])
            window.replace(replaced)
        else:
            # As after a restart: nothing is known but that there may be entries.
            window = ReadyWindow(is_complete=False)
        front = list(window.entries)
        assert front == index[: len(front)]
        assert not window.is_complete or front == index

    drop(store, head, index)


def test_first_of_a_window_has_as_many_entries_as_the_items_need() -> None:
    window = ReadyWindow(is_complete=False)
    window.entries.extend([entry(1, 2), entry(2, 5), entry(3, 1)])

    wanted = {1: 1, 2: 1, 3: 2, 7: 2, 8: 3}
    assert {items: len(window.first(items) or ()) for items in wanted} == wanted
    assert window.first(9) is None, "there may be more in the store"
    window.is_complete = True
    found = window.first(9)
    assert found == [entry(1, 2), entry(2, 5), entry(3, 1)]
    assert count_items([run for _, run in found]) == 8


def test_drop_first_leaves_the_rest_of_the_last_in_its_place() -> None:
    window = ReadyWindow(is_complete=True)
    window.insert([entry(1), entry(2), entry(3)])

    window.drop_first(2, entry(2, 3)[1])

    assert list(window.entries) == [entry(2, 3), entry(3)]
    window.drop_first(1, None)
    assert list(window.entries) == [entry(3)]


def test_replace_of_an_entry_behind_the_window_leaves_the_window_alone() -> None:
    window = ReadyWindow(is_complete=False)
    window.entries.extend([entry(1), entry(2)])

    due, run = entry(3)
    window.replace({due: (run, [entry(3, 2)])})

    assert list(window.entries) == [entry(1), entry(2)]
    assert not window.is_complete


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
    window.drop_first(2, None)

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
