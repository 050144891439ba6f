"""The simulated store beyond the contract of a store: what a crash leaves, and when it strikes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.simulation.disk import Crashed, Disk, no_families
from faults.simulation.memory_store import MemoryStore
from queueber.db.families import Family
from queueber.db.store.contract import Batch, ScanIncomplete, Store

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


def fill(batch: Batch, wanted: list[tuple[object, ...]]) -> Batch:
    for operation, *arguments in wanted:
        getattr(batch, str(operation))(*arguments)
    return batch


def write_all(store: Store, all_wanted: list[list[tuple[object, ...]]]) -> None:
    for wanted in all_wanted:
        store.write(fill(store.batch(), wanted))


def read_all(store: Store) -> list[list[tuple[bytes, bytes]]]:
    return [list(store.walk(family, b"", END)) for family in FAMILIES]


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
