"""The contract of a store, sentence by sentence, kept by every store that we have."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.recovery.wal import SYNCED_KEY
from queueber.db.store.contract import LOCAL_ENTRIES, Entries, ScanIncomplete, Store
from queueber.errors import InvariantViolation, Unavailable
from tests.support.dumps import Dump, dump
from tests.support.stores import OpenMemory, OpenRocks, OpenStore

END = b"\xff" * 8


@pytest.fixture(params=["rocksdb", "memory"])
def opened(request: pytest.FixtureRequest, folder: Path) -> Iterator[OpenStore]:
    made: OpenStore = OpenRocks(folder) if request.param == "rocksdb" else OpenMemory()
    yield made
    made.close()


@pytest.fixture
def store(opened: OpenStore) -> Store:
    return opened.store


def key(number: int) -> bytes:
    return number.to_bytes(4)


def entries(numbers: range) -> Entries:
    return [(key(n), b"v%d" % n) for n in numbers]


def put(store: Store, family: Family, *of_batch: tuple[bytes, bytes]) -> None:
    batch = store.batch()
    batch.put_many(family, of_batch)
    store.write(batch)


def delete(store: Store, numbers: range, family: Family = Family.ITEMS) -> None:
    batch = store.batch()
    batch.delete_many(family, [key(n) for n in numbers])
    store.write(batch)


def all_of(store: Store, family: Family = Family.ITEMS) -> Entries:
    return list(store.walk(family, b"", END))


def shared(found: Dump) -> Dump:
    """What is not local to one store."""
    local = {(family.family_name, key) for family, key in LOCAL_ENTRIES}
    return {
        name: [entry for entry in of_family if (name, entry[0]) not in local]
        for name, of_family in found.items()
    }


# --- a new store ----------------------------------------------------------------------------------


def test_new_store_holds_its_format_and_nothing_else(store: Store) -> None:
    found = dump(store)

    assert found.pop("default") == [(b"format", b"\0\0\0\5")]
    assert not any(found.values())


# --- batches --------------------------------------------------------------------------------------


def test_write_of_a_batch_puts_and_deletes_in_every_family(store: Store) -> None:
    batch = store.batch()
    for at, family in enumerate(Family):
        batch.put(family, b"kept", b"%d" % at)
        batch.put(family, b"gone", b"x")
    store.write(batch)
    batch = store.batch()
    for family in Family:
        batch.delete(family, b"gone")
    store.write(batch)

    for at, family in enumerate(Family):
        assert store.get(family, b"kept") == b"%d" % at
        assert store.get(family, b"gone") is None


def test_batch_that_is_not_written_changes_nothing(store: Store) -> None:
    before = dump(store)

    batch = store.batch()
    batch.put(Family.ITEMS, b"a", b"1")
    batch.delete_range(Family.DEFAULT, b"", END)

    assert dump(store) == before


def test_empty_batch_can_be_written_and_changes_nothing(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(3)))
    before = dump(store)

    batch = store.batch()
    batch.put_many(Family.ITEMS, [])
    batch.put_columns(Family.ITEMS, [], [])
    batch.delete_many(Family.ITEMS, [])
    assert len(batch) == 0
    store.write(batch)

    assert dump(store) == before


def test_length_of_a_batch_is_the_number_of_its_steps(store: Store) -> None:
    put(store, Family.ITEMS, (b"x", b""))
    store.sync()  # after which RocksDB adds a note of its own to a batch

    batch = store.batch()
    lengths = [len(batch)]
    batch.put(Family.ITEMS, b"a", b"1")
    lengths.append(len(batch))
    batch.put_many(Family.LEASES, [(b"a", b"1"), (b"a", b"2")])
    lengths.append(len(batch))
    batch.put_columns(Family.ITEMS, [b"b", b"c", b"d"], [b"", b"", b""])
    lengths.append(len(batch))
    batch.delete(Family.ITEMS, b"missing")
    batch.delete_many(Family.ITEMS, [b"a", b"b"])
    lengths.append(len(batch))
    batch.delete_range(Family.ITEMS, b"a", b"c")
    lengths.append(len(batch))

    assert lengths == [0, 1, 3, 6, 9, 10]


def test_put_columns_puts_each_value_under_its_key(store: Store) -> None:
    batch = store.batch()
    batch.put_columns(Family.ITEMS, [key(2), key(1)], [b"two", b"one"])
    store.write(batch)

    assert all_of(store) == [(key(1), b"one"), (key(2), b"two")]


def test_put_columns_of_different_lengths_stops_with_the_batch_as_it_was(store: Store) -> None:
    batch = store.batch()
    batch.put(Family.ITEMS, b"a", b"1")

    with pytest.raises(InvariantViolation, match="a value for each key is broken: family='items'"):
        batch.put_columns(Family.ITEMS, [key(1), key(2)], [b"one"])

    assert len(batch) == 1
    store.write(batch)
    assert all_of(store) == [(b"a", b"1")]


def test_steps_of_a_batch_take_effect_in_order(store: Store) -> None:
    batch = store.batch()
    batch.put(Family.ITEMS, b"a", b"1")
    batch.delete(Family.ITEMS, b"a")
    batch.put(Family.ITEMS, b"a", b"2")
    batch.put(Family.ITEMS, b"b", b"1")
    batch.delete(Family.ITEMS, b"b")
    batch.put_many(Family.ITEMS, [(b"c", b"1"), (b"c", b"2")])

    store.write(batch)

    assert store.get_many(Family.ITEMS, [b"a", b"b", b"c"]) == [b"2", None, b"2"]


def test_delete_of_a_missing_key_is_no_error(store: Store) -> None:
    delete(store, range(3))

    assert all_of(store) == []


# --- range deletions ------------------------------------------------------------------------------


def test_delete_range_includes_its_start_excludes_its_stop_and_leaves_other_families(
    store: Store,
) -> None:
    for family in (Family.ITEMS, Family.LEASES):
        put(store, family, *entries(range(10)))
    batch = store.batch()

    batch.delete_range(Family.ITEMS, key(3), key(7))
    store.write(batch)

    assert [int.from_bytes(k) for k, _ in all_of(store)] == [0, 1, 2, 7, 8, 9]
    assert store.get_many(Family.ITEMS, [key(2), key(3), key(6), key(7)]) == [
        b"v2",
        None,
        None,
        b"v7",
    ]
    assert len(all_of(store, Family.LEASES)) == 10


def test_delete_range_deletes_what_the_batch_put_before_it_and_leaves_what_it_puts_after(
    store: Store,
) -> None:
    put(store, Family.ITEMS, (b"b", b"old"))
    batch = store.batch()
    batch.put(Family.ITEMS, b"a", b"before")
    batch.put(Family.ITEMS, b"b", b"before")
    batch.delete_range(Family.ITEMS, b"a", b"c")
    batch.put(Family.ITEMS, b"a", b"after")

    store.write(batch)

    assert all_of(store) == [(b"a", b"after")]
    assert store.get_many(Family.ITEMS, [b"a", b"b"]) == [b"after", None]


@pytest.mark.parametrize("bound", [b"", b"b", END])
def test_delete_range_of_no_keys_deletes_nothing(store: Store, bound: bytes) -> None:
    put(store, Family.ITEMS, (b"", b"0"), (b"b", b"1"))
    before = dump(store)
    batch = store.batch()

    batch.delete_range(Family.ITEMS, bound, bound)
    store.write(batch)

    assert dump(store) == before


@pytest.mark.parametrize(("start", "stop"), [(b"b", b"a"), (b"a", b"")])
def test_delete_range_that_stops_before_it_starts_stops_with_the_batch_as_it_was(
    store: Store, start: bytes, stop: bytes
) -> None:
    batch = store.batch()
    batch.put(Family.ITEMS, b"a", b"1")

    with pytest.raises(InvariantViolation, match="a range starts before it stops is broken"):
        batch.delete_range(Family.ITEMS, start, stop)

    assert len(batch) == 1
    store.write(batch)
    assert all_of(store) == [(b"a", b"1")]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_write_that_is_refused_changes_nothing_and_may_be_repeated(opened: OpenStore) -> None:
    with opened.full_disk() as store:
        before = dump(store)

        def write() -> None:
            batch = store.batch()
            batch.put(Family.LEASES, b"a", b"1")
            batch.put(Family.ITEMS, b"a", bytes(4 << 20))
            batch.delete(Family.DEFAULT, b"format")
            store.write(batch)

        for _ in range(3):
            with pytest.raises(Unavailable, match="disk of the data directory is full"):
                write()
            assert dump(store) == before

        opened.make_room()
        written = False
        while not written:  # RocksDB takes a moment to find out
            with contextlib.suppress(Unavailable):
                write()
                written = True

        assert all_of(store, Family.LEASES) == [(b"a", b"1")]
        assert store.get(Family.DEFAULT, b"format") is None
        put(store, Family.DEFAULT, *before["default"])
        store.sync()


def test_write_of_a_batch_of_another_store_is_refused_and_changes_nothing(
    opened: OpenStore, tmp_path: Path
) -> None:
    other = OpenMemory() if isinstance(opened, OpenRocks) else OpenRocks(tmp_path)
    before = dump(opened.store)
    batch = other.store.batch()
    batch.put(Family.ITEMS, b"a", b"1")

    with pytest.raises(TypeError, match="a batch of another store"):
        opened.store.write(batch)

    assert dump(opened.store) == before
    other.close()


# --- reading --------------------------------------------------------------------------------------


def test_read_after_a_write_sees_all_of_it_before_any_sync(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(3)))

    assert store.get(Family.ITEMS, key(1)) == b"v1"
    assert store.get_many(Family.ITEMS, [key(0), key(2)]) == [b"v0", b"v2"]
    assert store.scan(Family.ITEMS, b"", END, 9) == entries(range(3)) == all_of(store)
    assert store.first_key(Family.ITEMS, b"", END, skips_max=9) == key(0)


def test_get_of_a_missing_key_is_none_and_of_an_empty_value_is_not(store: Store) -> None:
    put(store, Family.LEASE_EXPIRY, (b"empty", b""), (b"", b"of the empty key"))

    assert store.get(Family.LEASE_EXPIRY, b"empty") == b""
    assert store.get(Family.LEASE_EXPIRY, b"missing") is None
    assert store.get(Family.LEASE_EXPIRY, b"") == b"of the empty key"


def test_get_many_answers_in_the_order_asked_with_repeated_keys(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(5)))

    found = store.get_many(Family.ITEMS, [key(4), key(9), key(0), key(4)])

    assert found == [b"v4", None, b"v0", b"v4"]
    assert store.get_many(Family.ITEMS, []) == []


def test_keys_are_ordered_as_bytes(store: Store) -> None:
    keys = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\1",
        b"A",
        b"a",
        b"a\0",
        b"aa",
        b"b",
        b"\x7f",
        b"\x80",
        b"\xff",
    ]
    put(store, Family.ITEMS, *((each, b"") for each in reversed(keys)))

    assert [each for each, _ in all_of(store)] == keys


@pytest.mark.parametrize(
    ("start", "stop", "found"),
    [
        (key(2), key(5), [2, 3, 4]),
        (key(2), key(2), []),
        (key(5), key(2), []),
        (b"", key(1), [0]),
        (b"", b"", []),
        (key(8), END, [8, 9]),
        (key(9) + b"\0", END, []),
        (key(3)[:-1], key(1), [0]),
        (key(3) + b"\0", key(5) + b"\0", [4, 5]),
    ],
)
def test_scan_walk_and_first_key_include_the_start_and_exclude_the_stop(
    store: Store, start: bytes, stop: bytes, found: list[int]
) -> None:
    put(store, Family.ITEMS, *entries(range(10)))
    expected = [(key(n), b"v%d" % n) for n in found]

    assert store.scan(Family.ITEMS, start, stop, 99) == expected
    assert list(store.walk(Family.ITEMS, start, stop)) == expected
    first = store.first_key(Family.ITEMS, start, stop, skips_max=99)
    assert first == (expected[0][0] if expected else None)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4])
def test_scan_gives_no_more_than_its_limit(store: Store, limit: int) -> None:
    put(store, Family.ITEMS, *entries(range(3)))

    assert store.scan(Family.ITEMS, b"", END, limit) == entries(range(min(limit, 3)))


def test_walk_shows_the_entries_as_they_are_when_its_first_one_is_asked_for(store: Store) -> None:
    walk = store.walk(Family.ITEMS, b"", END)
    put(store, Family.ITEMS, *entries(range(6)))

    first = next(walk)
    delete(store, range(1, 3))
    put(store, Family.ITEMS, (key(3), b"new"), (key(9), b"new"))
    batch = store.batch()
    batch.delete_range(Family.ITEMS, key(4), END)
    store.write(batch)

    assert [first, *walk] == entries(range(6))
    assert all_of(store) == [(key(0), b"v0"), (key(3), b"new")]


def test_two_walks_of_one_range_do_not_disturb_each_other(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(5)))

    walks = zip(
        store.walk(Family.ITEMS, b"", END), store.walk(Family.ITEMS, key(1), END), strict=False
    )

    assert [(one[1], other[1]) for one, other in walks] == [
        (b"v0", b"v1"),
        (b"v1", b"v2"),
        (b"v2", b"v3"),
        (b"v3", b"v4"),
    ]


def test_walk_that_is_given_up_harms_nothing(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(5)))
    walk = store.walk(Family.ITEMS, b"", END)
    next(walk)

    del walk

    delete(store, range(5))
    assert all_of(store) == []


# --- looking for a first key ----------------------------------------------------------------------


def test_first_key_behind_deleted_ones_is_found_or_the_search_is_incomplete(store: Store) -> None:
    """Never another key, and never None: whoever asks goes on from elsewhere."""
    put(store, Family.ITEMS, *entries(range(2001)))
    delete(store, range(2000))

    with contextlib.suppress(ScanIncomplete):
        assert store.first_key(Family.ITEMS, key(0), key(5000), skips_max=1000) == key(2000)


def test_first_key_behind_as_many_deleted_ones_as_it_may_skip_is_found(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(501)))
    delete(store, range(500))

    assert store.first_key(Family.ITEMS, key(0), key(5000), skips_max=1000) == key(500)
    assert store.first_key(Family.ITEMS, key(0), key(500), skips_max=1000) is None


def test_first_key_from_behind_the_deleted_ones_is_found_at_once(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(5001)))
    delete(store, range(5000))

    assert store.first_key(Family.ITEMS, key(4990), key(9000), skips_max=100) == key(5000)


# --- snapshots ------------------------------------------------------------------------------------


def change(store: Store, how: str) -> None:
    batch = store.batch()
    for family in (Family.DEAD, Family.ITEMS):
        if how == "deleted":
            batch.delete_many(family, [b"a", b"b"])
        elif how == "deleted as a range":
            batch.delete_range(family, b"a", END)
        else:
            batch.put_many(family, [(b"a", b"new"), (b"aa", b"new"), (b"b", b"new")])
    store.write(batch)


@pytest.mark.parametrize("how", ["deleted", "deleted as a range", "written"])
@pytest.mark.parametrize("is_reclaimed", [False, True], ids=["as it is", "reclaimed"])
def test_snapshot_shows_its_moment_whatever_is_written_later(
    store: Store, how: str, is_reclaimed: bool
) -> None:
    old = [(b"a", b"old"), (b"b", b"old")]
    for family in (Family.DEAD, Family.ITEMS):
        put(store, family, *old)
    snapshot = store.snapshot([(Family.DEAD, END)], [Family.ITEMS])

    change(store, how)
    if is_reclaimed:
        for family in (Family.DEAD, Family.ITEMS):
            store.reclaim(family, b"", END)

    assert snapshot.scan(Family.DEAD, b"", END, 9) == old
    assert list(snapshot.walk(Family.DEAD, b"", END)) == old
    assert snapshot.get(Family.ITEMS, b"a") == b"old"
    assert snapshot.get_many(Family.ITEMS, [b"a", b"aa", b"b"]) == [b"old", None, b"old"]
    assert store.get(Family.ITEMS, b"a") == (b"new" if how == "written" else None)


def test_snapshot_scans_from_any_key_again_and_again(store: Store) -> None:
    put(store, Family.DEAD, *((each, b"") for each in (b"a", b"b", b"c", b"x")))
    snapshot = store.snapshot([(Family.DEAD, b"x"), (Family.DEAD, b"b")], [])

    def keys(start: bytes, stop: bytes, limit: int) -> list[bytes]:
        return [key for key, _ in snapshot.scan(Family.DEAD, start, stop, limit)]

    assert keys(b"", b"x", 2) == [b"a", b"b"]
    assert keys(b"b", b"x", 9) == [b"b", b"c"]
    assert keys(b"a\0", b"x", 1) == [b"b"]
    assert keys(b"d", b"x", 9) == []
    assert keys(b"a", b"x", 9) == [b"a", b"b", b"c"]
    assert keys(b"", b"b", 9) == [b"a"]
    assert keys(b"", b"x", 0) == []


def test_snapshots_of_different_moments_each_show_their_own(store: Store) -> None:
    snapshots = []
    for number in range(3):
        put(store, Family.ITEMS, (b"a", b"%d" % number))
        snapshots.append(store.snapshot([(Family.ITEMS, END)], [Family.ITEMS]))
    snapshots.pop(1).close()

    assert [each.get(Family.ITEMS, b"a") for each in snapshots] == [b"0", b"2"]
    assert [each.scan(Family.ITEMS, b"", END, 9) for each in snapshots] == [
        [(b"a", b"0")],
        [(b"a", b"2")],
    ]


def test_snapshot_shows_nothing_but_its_ranges_and_families_and_nothing_once_closed(
    store: Store,
) -> None:
    put(store, Family.ITEMS, *entries(range(3)))
    snapshot = store.snapshot([(Family.ITEMS, key(2))], [Family.LEASES])

    for _ in range(2):
        with pytest.raises(KeyError):
            snapshot.scan(Family.ITEMS, b"", END, 9)
        with pytest.raises(KeyError):
            list(snapshot.walk(Family.LEASES, b"", key(2)))
        with pytest.raises(KeyError):
            snapshot.get_many(Family.ITEMS, [key(1)])
        snapshot.close()
    with pytest.raises(KeyError):
        snapshot.scan(Family.ITEMS, b"", key(2), 9)
    with pytest.raises(KeyError):
        snapshot.get_many(Family.LEASES, [key(1)])


def test_close_of_the_store_closes_its_snapshots(opened: OpenStore) -> None:
    put(opened.store, Family.DEAD, (b"a", b"1"))
    snapshot = opened.store.snapshot([(Family.DEAD, END)], [])

    again = opened.reopen()

    with pytest.raises(KeyError):
        snapshot.scan(Family.DEAD, b"", END, 1)
    assert again.get(Family.DEAD, b"a") == b"1"


# --- crashes --------------------------------------------------------------------------------------


def test_store_that_is_opened_again_holds_what_was_written(opened: OpenStore) -> None:
    for family in QUEUE_FAMILIES:
        put(opened.store, family, *entries(range(100)))
    delete(opened.store, range(50))
    before = dump(opened.store)

    assert dump(opened.reopen()) == before
    assert len(before["items"]) == 50


def test_crash_after_a_sync_loses_nothing_that_was_written_before_it(opened: OpenStore) -> None:
    put(opened.store, Family.ITEMS, *entries(range(100)))
    batch = opened.store.batch()
    batch.delete_range(Family.ITEMS, key(10), key(90))
    opened.store.write(batch)
    opened.store.sync()
    before = dump(opened.store)

    assert dump(opened.crash()) == before


def test_crash_leaves_batches_up_to_some_point_not_before_the_last_sync(opened: OpenStore) -> None:
    states = []
    for number in range(20):
        batch = opened.store.batch()
        batch.put(Family.ITEMS, key(number), b"")
        batch.put(Family.LEASES, key(0), key(number))
        if number:
            batch.delete(Family.ITEMS, key(number - 1))
        opened.store.write(batch)
        states.append(shared(dump(opened.store)))
        if number == 11:
            opened.store.sync()

    left = shared(dump(opened.crash()))

    assert left in states[11:]


# --- what is shared, and what is local ------------------------------------------------------------


def test_stores_that_got_the_same_changes_hold_the_same_but_for_what_is_local(
    opened: OpenStore, tmp_path: Path
) -> None:
    """Syncing, reclaiming and opening again change no entry that is shared."""
    other = OpenRocks(tmp_path)

    def write(store: Store, number: int) -> None:
        batch = store.batch()
        batch.put_many(Family.ITEMS, entries(range(number, number + 5)))
        batch.delete_range(Family.ITEMS, key(number), key(number + 2))
        store.write(batch)

    for number in range(10):
        write(opened.store, number)
        write(other.store, number)
        other.store.sync()
        if number == 5:
            other.store.reclaim(Family.ITEMS, b"", END)
    other.reopen()

    assert shared(dump(other.store)) == shared(dump(opened.store))
    assert other.store.get(Family.DEFAULT, SYNCED_KEY) is not None
    other.close()


def test_note_how_far_the_log_was_synced_is_local() -> None:
    assert frozenset({(Family.DEFAULT, SYNCED_KEY)}) == LOCAL_ENTRIES


def test_slices_of_a_range_are_consecutive_and_cover_it(store: Store) -> None:
    put(store, Family.ITEMS, *entries(range(100)))
    store.reclaim(Family.ITEMS, b"", END)

    slices = store.slices(key(0), key(100))

    assert slices[0][0] == key(0)
    assert slices[-1][1] == key(100)
    assert [stop for _, stop in slices[:-1]] == [start for start, _ in slices[1:]]
    for start, stop in slices:
        store.reclaim(Family.ITEMS, start, stop)
    assert all_of(store) == entries(range(100))
