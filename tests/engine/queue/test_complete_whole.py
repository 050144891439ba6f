"""Complete of whole leases: named by lease and count, with the results in the order of the poll."""

from collections.abc import Sequence

import pytest

from queueber.limits import MIB
from queueber.model import NewItems, PackedContents
from tests.engine.making import counters_aside
from tests.support.operations import complete_whole, read_results
from tests.support.rig import Rig


def results_of(rig: Rig) -> list[tuple[bytes, bytes]]:
    found = read_results(rig.engine, rig.queue, 0, 1000, MIB).results
    return [(each.id, each.result) for each in found]


def complete(
    rig: Rig, leases: Sequence[bytes], counts: Sequence[int], results: Sequence[bytes]
) -> list[bool]:
    return complete_whole(rig.engine, rig.queue, leases, counts, results, rig.now_ms)


@pytest.mark.parametrize("packed", [False, True])
def test_complete_of_whole_leases_leaves_their_results_and_nothing_else(
    rig: Rig, packed: bool
) -> None:
    empty = counters_aside(rig)
    ids = [*rig.add(b"a", b"b"), *rig.add(b"c")]
    leases = [polled.lease_id for polled in rig.poll_many([1, 2])]
    results: Sequence[bytes] = [b"A", b"", b"C"]

    completed = complete(rig, leases, [1, 2], PackedContents.pack(results) if packed else results)

    assert completed == [True, True]
    assert results_of(rig) == list(zip(ids, results, strict=True))
    after = counters_aside(rig)
    assert {name for name in after if after[name] != empty[name]} == {"logs", "log_blocks"}
    assert (rig.stats().completed_total, rig.stats().leases) == (3, 0)
    rig.assert_sound()


def test_results_belong_to_the_items_in_the_order_of_the_poll(rig: Rig) -> None:
    """That is not the order of ids: the last item comes first, because of its priority."""
    items = NewItems([b"low", b"high"], priorities=[1, 9], keys=["", "k"], batch="b")
    low, high = rig.add_items(items).ids
    polled = rig.poll(2)
    assert polled.ids == [high, low]

    assert complete(rig, [polled.lease_id], [2], [b"of high", b"of low"]) == [True]

    found = read_results(rig.engine, rig.queue, 0, 1000, MIB).results
    assert [(each.id, each.result, each.key, each.batch) for each in found] == [
        (high, b"of high", "k", "b"),
        (low, b"of low", "", "b"),
    ]


def test_only_leases_that_hold_all_items_are_completed(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c", b"d")
    one, two, three = rig.poll_many([1, 2, 1])
    rig.remove(ids[1:2], two.lease_id)
    leases = [bytes(16), one.lease_id, two.lease_id, three.lease_id, one.lease_id]

    completed = complete(rig, leases, [1, 1, 2, 1, 1], [b"0", b"1", b"2", b"3", b"4", b"5"])

    assert completed == [False, True, False, True, False]
    assert results_of(rig) == [(ids[0], b"1"), (ids[3], b"4")]
    assert [item_id for item_id, _ in rig.held()] == [ids[2]]
    rig.assert_sound()


def test_a_whole_lease_that_ran_out_or_never_was_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    lease_id = rig.poll(lease_ms=100).lease_id
    rig.now_ms += 100
    disk, memory = rig.dump(), rig.memory()

    assert complete(rig, [lease_id, bytes(16)], [1, 1], [b"x", b"y"]) == [False, False]

    assert (rig.dump(), rig.memory()) == (disk, memory)
