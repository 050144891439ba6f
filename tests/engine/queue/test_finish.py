"""Finish: an item goes with all that is kept of it, and counts in its batch once."""

import pytest

from queueber.db.families import Family
from queueber.db.records.runs import count_items
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.model import NewItems
from tests.support.operations import receipt
from tests.support.rig import Rig

EMPTY_FAMILIES = {
    Family.ITEMS, Family.LEFTOVERS, Family.VISIBILITY_INDEX, Family.DELAYED, Family.PLACES,
    Family.DEAD, Family.LEASES, Family.LEASE_EXPIRY, Family.HOLDERS, Family.ATTEMPTS,
}  # fmt: skip


def finish_all(rig: Rig, side: Side | None) -> None:
    polled = rig.poll(10)
    tx = Transaction(rig.engine.kernel, rig.now_ms, rig.queue)
    runs = rig.queue.leases.take(tx, polled.ids, [polled.lease_id] * polled.count).runs
    finish(tx, runs, side)
    tx.counters.removed_total += count_items(runs)
    tx.commit()


@pytest.mark.parametrize("side", [Side.DONE, Side.DEAD])
def test_finish_leaves_nothing_of_items_of_any_kind(rig: Rig, side: Side) -> None:
    rig.add(b"plain")
    rig.add_items(
        NewItems([b"s", b"t"], priorities=[9, 0], keys=["k", ""], attributes=[{}, {"a": "b"}])
    )
    polled = rig.poll()
    rig.fail(polled.ids, polled.lease_id, delay_ms=0)
    rig.now_ms += 1

    finish_all(rig, side)

    assert [family for family in EMPTY_FAMILIES if rig.keys(family)] == []
    assert rig.stats().contents_bytes == 0
    rig.assert_sound()


@pytest.mark.parametrize(
    ("side", "done", "dead"), [(Side.DONE, 2, 0), (Side.DEAD, 0, 2)], ids=["done", "dead"]
)
def test_finish_counts_the_items_of_a_batch_on_the_side_it_is_told(
    rig: Rig, side: Side, done: int, dead: int
) -> None:
    rig.add_items(NewItems([b"a", b"b"], batch="b"))
    rig.add(b"of no batch")

    finish_all(rig, side)

    found = receipt(rig.engine, rig.queue, "b")
    assert (found.added, found.done, found.dead, found.live) == (2, done, dead, 0)
    assert found.complete
    rig.assert_sound()


def test_finish_of_what_was_counted_before_leaves_its_batch_alone(rig: Rig) -> None:
    rig.add_items(NewItems([b"a"], batch="b"))
    before = receipt(rig.engine, rig.queue, "b")

    finish_all(rig, None)

    assert receipt(rig.engine, rig.queue, "b") == before
