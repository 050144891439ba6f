"""The simulated store: whatever is done to it, it reads as a real one; after a crash, a prefix."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.simulation.disk import Crashed, Disk, no_families
from faults.simulation.memory_store import MemoryStore
from queueber.db.families import Family
from queueber.db.store.contract import Batch, ScanIncomplete, Store
from queueber.db.store.rocks import RocksStore
from queueber.errors import Unavailable
from tests.support.folders import quick_folder, remove_folder

FAMILIES = (Family.ITEMS, Family.LEASES)
END = b"\xff" * 8

families = st.sampled_from(FAMILIES)
keys = st.binary(min_size=1, max_size=3)
values = st.binary(max_size=3)
steps = st.one_of(
    st.tuples(st.just("put"), families, keys, values),
    st.tuples(st.just("delete"), families, keys),
    st.tuples(st.just("put_many"), families, st.lists(st.tuples(keys, values), max_size=3)),
    st.tuples(
        st.just("put_columns"),
        families,
        st.lists(keys, min_size=3, max_size=3),
        st.lists(values, min_size=3, max_size=3),
    ),
    st.tuples(st.just("delete_many"), families, st.lists(keys, max_size=3)),
    st.tuples(st.just("delete_range"), families, st.binary(max_size=1), st.just(b"\x80")).filter(
        lambda step: step[2] < step[3]
    ),
)
batches = st.lists(st.lists(steps, max_size=5), max_size=8)


@pytest.fixture(scope="module")
def real() -> Iterator[Store]:
    folder = quick_folder()
    with RocksStore(folder / "data") as opened:
        yield opened
    remove_folder(folder)


def fill(batch: Batch, wanted: list[tuple[object, ...]]) -> Batch:
    for operation, *arguments in wanted:
        getattr(batch, str(operation))(*arguments)
    return batch


def write_all(store: Store, all_wanted: list[list[tuple[object, ...]]]) -> None:
    for wanted in all_wanted:
        store.write(fill(store.batch(), wanted))


def read_all(store: Store) -> list[list[tuple[bytes, bytes]]]:
    return [list(store.walk(family, b"", END)) for family in FAMILIES]


@settings(max_examples=100, deadline=None)
@given(wanted=batches, later=batches, start=keys, stop=keys, limit=st.integers(0, 4))
def test_simulated_store_reads_as_a_real_one(
    real: Store,
    wanted: list[list[tuple[object, ...]]],
    later: list[list[tuple[object, ...]]],
    start: bytes,
    stop: bytes,
    limit: int,
) -> None:
    write_all(real, [[("delete_range", family, b"\0", END) for family in FAMILIES]])
    simulated = MemoryStore(Disk(no_families()))
    stores = (real, simulated)

    for store in stores:
        write_all(store, wanted)
    ranges = [(family, END) for family in FAMILIES]
    snapshots = [store.snapshot(ranges, FAMILIES) for store in stores]
    for store in stores:
        write_all(store, later)

    assert read_all(simulated) == read_all(real)
    start, stop = sorted((start, stop))
    for family in FAMILIES:
        for one, other in (stores, snapshots):
            assert one.get(family, start) == other.get(family, start)
            assert one.get_many(family, [start, stop]) == other.get_many(family, [start, stop])
            assert one.scan(family, start, END, limit) == other.scan(family, start, END, limit)
            assert list(one.walk(family, start, END)) == list(other.walk(family, start, END))
        assert simulated.scan(family, start, stop, limit) == real.scan(family, start, stop, limit)
        first_keys = [store.first_key(family, start, stop, skips_max=1000) for store in stores]
        assert first_keys[0] == first_keys[1]
    for snapshot in snapshots:
        snapshot.close()


@settings(max_examples=50, deadline=None)
@given(wanted=batches, synced=st.integers(0, 8), seed=st.integers(0, 20))
def test_crash_leaves_a_prefix_with_all_that_was_synced(
    wanted: list[list[tuple[object, ...]]], synced: int, seed: int
) -> None:
    store = MemoryStore(Disk(no_families()))
    states = [read_all(store)]
    for number, of_batch in enumerate(wanted, 1):
        write_all(store, [of_batch])
        states.append(read_all(store))
        if number == synced:
            store.sync()

    store.disk.crash()
    left, lost = store.disk.left_after_crash(Random(seed))

    kept = len(wanted) - lost
    assert kept >= 0
    assert kept >= synced or synced > len(wanted)
    assert read_all(MemoryStore(Disk(left))) == states[kept]


def test_full_disk_refuses_a_write_and_changes_nothing() -> None:
    store = MemoryStore(Disk(no_families()))
    before = read_all(store)
    store.disk.is_full = True

    with pytest.raises(Unavailable):
        write_all(store, [[("put", Family.ITEMS, b"k", b"v")]])

    assert read_all(store) == before


def test_crash_strikes_after_the_write_and_nothing_is_written_any_more() -> None:
    store = MemoryStore(Disk(no_families()))

    def strike() -> None:
        store.disk.crash()
        raise Crashed

    store.disk.on_write = strike
    with pytest.raises(Crashed):
        write_all(store, [[("put", Family.ITEMS, b"k", b"v")]])
    write_all(store, [[("put", Family.ITEMS, b"later", b"v")]])

    assert store.get(Family.ITEMS, b"k") == b"v"
    assert store.get(Family.ITEMS, b"later") is None


def test_look_ahead_gives_up_when_it_is_told_to() -> None:
    store = MemoryStore(Disk(no_families()), gives_up=lambda: True)

    with pytest.raises(ScanIncomplete):
        store.first_key(Family.LEASES, b"", END, skips_max=1)
