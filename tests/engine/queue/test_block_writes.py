"""A block is one entry, so what happens to all of its items takes as many writes as for one."""

from collections.abc import Callable

import pytest

from queueber.db.families import Family
from queueber.db.store.contract import Batch
from queueber.engine.kernel.transaction import Transaction
from queueber.limits import BLOCK_ITEMS_MAX
from tests.engine.making import run_of
from tests.support.operations import release_lease, remove_whole
from tests.support.rig import Rig


def steps_of(rig: Rig, operation: Callable[[], object]) -> int:
    """How many steps the operation writes, all in one batch."""
    steps: list[int] = []
    write = rig.store.write

    def counted(batch: Batch) -> None:
        steps.append(len(batch))
        write(batch)

    rig.store.write = counted  # type: ignore[method-assign]
    operation()
    rig.store.write = write  # type: ignore[method-assign]
    (only,) = steps
    return only


@pytest.mark.parametrize("count", [1, 2, 100, BLOCK_ITEMS_MAX])
@pytest.mark.parametrize("how", ["remove", "remove_whole", "release_lease"])
def test_life_of_a_whole_block_takes_as_many_writes_as_that_of_one_item(
    rig: Rig, count: int, how: str
) -> None:
    empty = rig.dump()
    added = steps_of(rig, lambda: rig.add(*[b"x"] * count))
    polled_steps = steps_of(rig, lambda: rig.poll(count))
    polled = rig.runs(Family.LEASES)[0]
    (lease_key,) = rig.keys(Family.LEASES)
    leases = [lease_key[4:]]
    rig.now_ms += 1
    end: dict[str, Callable[[], object]] = {
        "remove": lambda: rig.remove(polled.ids, leases[0]),
        "remove_whole": lambda: remove_whole(rig.engine, rig.queue, leases, [count], rig.now_ms),
        "release_lease": lambda: release_lease(rig.engine, rig.queue, leases[0], rig.now_ms),
    }

    ended = steps_of(rig, end[how])

    assert added == 3, "block, ready, counters"
    assert polled_steps == 5, "ready, lease, expiry, holders, counters"
    if how == "release_lease":
        assert ended == 6, "lease, expiry, holders, ready, place, counters"
        assert rig.stats().ready == count
    else:
        assert ended == 5, "block, lease, expiry, holders, counters"
        assert {**rig.dump(), "counters": []} == {**empty, "counters": []}
    rig.assert_sound()


@pytest.mark.parametrize("blocks", [2, 5])
def test_lease_of_several_whole_blocks_ends_with_two_writes_for_each(rig: Rig, blocks: int) -> None:
    rig.add(*[b"x"] * (blocks * BLOCK_ITEMS_MAX))
    polled = rig.poll(blocks * BLOCK_ITEMS_MAX)

    steps = steps_of(rig, lambda: rig.remove(polled.ids, polled.lease_id))

    assert steps == 3 + 2 * blocks, "block and holders of each; lease, expiry, counters"
    assert rig.keys(Family.ITEMS) == rig.keys(Family.LEFTOVERS) == rig.keys(Family.HOLDERS) == []
    rig.assert_sound()


def test_block_whose_items_end_in_parts_of_one_transaction_is_deleted_as_a_whole(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * 6)
    one, two = rig.poll_many([2, 4])
    tx = Transaction(rig.engine.kernel, rig.now_ms, rig.queue)
    taken = rig.queue.leases.take(tx, ids, [one.lease_id] * 2 + [two.lease_id] * 4)

    rig.queue.blocks.drop(tx, taken.runs[:1])
    rig.queue.blocks.drop(tx, taken.runs[1:])
    tx.commit()

    assert taken.runs == [run_of(ids[:2], 2, span=6), run_of(ids[2:], 4, at=2)]
    assert rig.keys(Family.ITEMS) == rig.keys(Family.LEFTOVERS) == []
