"""Random batches: every store that we have reads as a dictionary to which the same was done."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.simulation.disk import Disk, no_families
from faults.simulation.memory_store import MemoryStore
from queueber.db.families import Family
from queueber.db.store.contract import Batch, Entries, Reads, Store
from queueber.db.store.rocks import RocksStore
from tests.support.folders import quick_folder, remove_folder

FAMILIES = (Family.ITEMS, Family.LEASES)
END = b"\xff" * 8

Model = dict[Family, dict[bytes, bytes]]
Step = tuple[Callable[[Batch], None], Callable[[Model], None], int]
"""What it does to a batch, what to a model, and how many steps of a batch it counts as."""


def put(family: Family, key: bytes, value: bytes) -> Step:
    return (
        lambda batch: batch.put(family, key, value),
        lambda model: model[family].update({key: value}),
        1,
    )


def put_many(family: Family, entries: Entries, as_columns: bool) -> Step:
    def fill(batch: Batch) -> None:
        if as_columns:
            batch.put_columns(family, [key for key, _ in entries], [value for _, value in entries])
        else:
            batch.put_many(family, entries)

    return fill, lambda model: model[family].update(entries), len(entries)


def delete_many(family: Family, keys: list[bytes]) -> Step:
    def fill(batch: Batch) -> None:
        if len(keys) == 1:
            batch.delete(family, keys[0])
        else:
            batch.delete_many(family, keys)

    def apply(model: Model) -> None:
        for key in keys:
            model[family].pop(key, None)

    return fill, apply, len(keys)


def delete_range(family: Family, bounds: list[bytes]) -> Step:
    start, stop = bounds

    def apply(model: Model) -> None:
        for key in [key for key in model[family] if start <= key < stop]:
            del model[family][key]

    return lambda batch: batch.delete_range(family, start, stop), apply, 1


families = st.sampled_from(FAMILIES)
# Of few different bytes, so that steps meet; the empty key is one like any other.
keys = st.lists(st.sampled_from([0, 1, 0x80, 0xFF]), max_size=2).map(bytes)
values = st.binary(max_size=3)
bounds = st.tuples(keys, keys).map(sorted)
steps = st.one_of(
    st.builds(put, families, keys, values),
    st.builds(put_many, families, st.lists(st.tuples(keys, values), max_size=4), st.booleans()),
    st.builds(delete_many, families, st.lists(keys, max_size=4)),
    st.builds(delete_range, families, bounds),
)
batches = st.lists(st.lists(steps, max_size=5), max_size=6)


@pytest.fixture(scope="module", params=["rocksdb", "memory"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """One for all examples: opening RocksDB takes longer than an example."""
    if request.param == "memory":
        yield MemoryStore(Disk(no_families()))
        return
    folder = quick_folder()
    with RocksStore(folder / "data") as opened:
        yield opened
    remove_folder(folder)


def emptied(store: Store) -> Model:
    batch = store.batch()
    for family in FAMILIES:
        batch.delete_range(family, b"", END)
    store.write(batch)
    return {family: {} for family in FAMILIES}


def write_all(store: Store, model: Model, wanted: list[list[Step]]) -> None:
    for of_batch in wanted:
        batch = store.batch()
        for fill, _, _ in of_batch:
            fill(batch)
        assert len(batch) == sum(count for _, _, count in of_batch)
        store.write(batch)
        for _, apply, _ in of_batch:
            apply(model)


def expected(model: Model, family: Family, start: bytes = b"", stop: bytes = END) -> Entries:
    return [entry for entry in sorted(model[family].items()) if start <= entry[0] < stop]


def assert_reads(reads: Reads, model: Model, asked: list[bytes], start: bytes, limit: int) -> None:
    """What a store and a snapshot of it both answer."""
    for family in FAMILIES:
        found = expected(model, family, start)
        assert reads.scan(family, start, END, limit) == found[:limit]
        assert list(reads.walk(family, start, END)) == found
        assert reads.get_many(family, asked) == [model[family].get(key) for key in asked]
        assert [reads.get(family, key) for key in asked] == reads.get_many(family, asked)


@settings(max_examples=100, deadline=None)
@given(
    wanted=batches,
    later=batches,
    asked=st.lists(keys, max_size=6),
    start=keys,
    stop=keys,
    limit=st.integers(0, 6),
)
def test_store_reads_as_a_dictionary_and_its_snapshot_as_one_of_before(
    store: Store,
    wanted: list[list[Step]],
    later: list[list[Step]],
    asked: list[bytes],
    start: bytes,
    stop: bytes,
    limit: int,
) -> None:
    model = emptied(store)
    write_all(store, model, wanted)
    before = {family: entries.copy() for family, entries in model.items()}
    snapshot = store.snapshot([(family, END) for family in FAMILIES], FAMILIES)

    write_all(store, model, later)

    assert_reads(store, model, asked, start, limit)
    assert_reads(snapshot, before, asked, start, limit)
    snapshot.close()
    for family in FAMILIES:
        found = expected(model, family, start, stop)
        assert store.scan(family, start, stop, limit) == found[:limit]
        assert list(store.walk(family, start, stop)) == found
        first = store.first_key(family, start, stop, skips_max=1000)
        assert first == (found[0][0] if found else None)


def number_key(number: int) -> bytes:
    return number.to_bytes(4)


def put_even_numbers(store: Store) -> None:
    """Up to 38."""
    model = emptied(store)
    even = [(number_key(n), b"v%d" % n) for n in range(0, 40, 2)]
    write_all(store, model, [[put_many(Family.ITEMS, even, as_columns=False)]])


@settings(max_examples=200)
@given(start=st.integers(0, 42), stop=st.integers(0, 42), limit=st.integers(1, 25))
def test_scan_and_first_key_give_what_lies_within_their_bounds(
    store: Store, start: int, stop: int, limit: int
) -> None:
    put_even_numbers(store)

    found = store.scan(Family.ITEMS, number_key(start), number_key(stop), limit)
    first = store.first_key(Family.ITEMS, number_key(start), number_key(stop), skips_max=1000)

    within = [n for n in range(0, 40, 2) if start <= n < stop]
    assert found == [(number_key(n), b"v%d" % n) for n in within][:limit]
    assert first == (number_key(within[0]) if within else None)
