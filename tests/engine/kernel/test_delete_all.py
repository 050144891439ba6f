"""Deleting all entries of a prefix: one by one, or as a range if there are many."""

import pytest

from queueber.db.families import Family
from queueber.engine.kernel.delete_all import delete_all
from queueber.engine.kernel.transaction import Transaction
from tests.support.rig import Rig

PREFIX, OTHER = b"\0\0\0\7", b"\0\0\0\x08"


@pytest.mark.parametrize(("count", "is_many"), [(0, False), (256, False), (257, True)])
def test_all_entries_of_the_prefix_go_and_no_others(rig: Rig, count: int, is_many: bool) -> None:
    tx = Transaction(rig.engine.kernel, rig.now_ms, None)
    for number in range(count):
        tx.batch.put(Family.POSITIONS, PREFIX + number.to_bytes(2), b"x")
    tx.batch.put(Family.POSITIONS, OTHER, b"x")
    tx.commit()
    tx = Transaction(rig.engine.kernel, rig.now_ms, None)
    assert delete_all(tx, Family.POSITIONS, PREFIX) is is_many
    tx.commit()
    assert rig.keys(Family.POSITIONS) == [OTHER]
