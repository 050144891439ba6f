"""Holders: the lease of an item is found by its id."""

from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.engine.queue.leases import Leases
from tests.support.rig import Rig

LEASE = b"L" * 16
PREFIX = b"\0\0\0\1"


def test_a_lease_has_one_key_for_each_block_of_ids(rig: Rig) -> None:
    ids = [b"a" * 15 + b"\0", b"a" * 15 + b"\xff", b"b" * 16, b"a" * 15 + b"\1"]

    keys = Leases(rig.store, PREFIX)._holder_keys(LEASE, ids)

    assert keys == [PREFIX + b"a" * 15 + LEASE, PREFIX + b"b" * 15 + LEASE]
    assert Leases(rig.store, PREFIX)._holder_keys(LEASE, []) == []


def test_items_that_were_added_and_leased_together_need_an_entry_or_two(rig: Rig) -> None:
    rig.add(*[b"x"] * 200)
    rig.poll(200)

    assert len(rig.keys(Family.HOLDERS)) in (1, 2)


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_every_leased_item_is_found_with_its_lease_and_no_other_item_is(
    data: st.DataObject,
) -> None:
    rig = Rig()
    try:
        ids = rig.add(*[b"x"] * data.draw(st.integers(1, 40)))
        counts = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
        lease_of = {i: polled.lease_id for polled in rig.poll_many(counts) for i in polled.ids}
        ended = data.draw(st.lists(st.sampled_from(ids), unique=True))
        for item_id in ended:
            if item_id in lease_of:
                assert rig.remove([item_id], lease_of.pop(item_id)) == [True]
        asked = data.draw(st.permutations([*ids, b"\xff" * 16, bytes(16)]))

        found = rig.queue.leases.find(asked)

        assert dict(found) == lease_of
        assert len(found) == len(lease_of)
        rig.assert_sound()
    finally:
        rig.close()
