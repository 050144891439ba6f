"""Holders: the lease of an item is found by its id, through the block of its contents."""

from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.limits import BLOCK_ITEMS_MAX
from tests.support.rig import Rig


def test_a_lease_has_one_key_for_each_block_of_which_it_holds_items(rig: Rig) -> None:
    one = rig.add(b"a", b"b", b"c")
    two = rig.add(b"d", b"e")
    rig.add(b"f")

    first, second = rig.poll_many([2, 3])

    assert rig.keys(Family.HOLDERS) == [
        rig.queue.prefix + one[-1] + first.lease_id,
        rig.queue.prefix + one[-1] + second.lease_id,
        rig.queue.prefix + two[-1] + second.lease_id,
    ]
    assert {value for _, value in rig.dump()["holders"]} == {b""}
    rig.assert_sound()


def test_a_lease_of_two_runs_of_a_block_has_one_key_until_both_are_gone(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    rig.release([ids[1]], rig.poll(3).lease_id)
    held = rig.held()
    (key,) = rig.keys(Family.HOLDERS)
    lease_id = key[-16:]
    assert key == rig.queue.prefix + ids[2] + lease_id
    assert [item_id for item_id, _ in held] == [ids[0], ids[2]]

    rig.remove([ids[2]], lease_id)
    assert rig.keys(Family.HOLDERS) == [key]

    rig.remove([ids[0]], lease_id)
    assert rig.keys(Family.HOLDERS) == []
    rig.assert_sound()


def test_items_of_two_blocks_need_two_keys_however_many_they_are(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * (BLOCK_ITEMS_MAX + 1))

    lease_id = rig.poll(BLOCK_ITEMS_MAX + 1).lease_id

    assert rig.keys(Family.HOLDERS) == [
        rig.queue.prefix + ids[-2] + lease_id,
        rig.queue.prefix + ids[-1] + lease_id,
    ]
    rig.assert_sound()


def test_a_block_may_have_as_many_leases_as_items_and_each_is_found(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * BLOCK_ITEMS_MAX)
    answers = rig.poll_many([1] * BLOCK_ITEMS_MAX)

    found = rig.queue.leases.find(ids)

    assert sorted(found) == [(item, polled.lease_id) for polled in answers for item in polled.ids]
    rig.assert_sound()


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_every_leased_item_is_found_with_its_lease_and_no_other_item_is(
    data: st.DataObject,
) -> None:
    """Over several blocks, of which items are ready, in progress and gone in any pattern."""
    rig = Rig()
    try:
        ids: list[bytes] = []
        for count in data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4)):
            ids += rig.add(*[b"x"] * count)
        counts = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
        lease_of: dict[bytes, bytes] = {
            i: polled.lease_id for polled in rig.poll_many(counts) for i in polled.ids
        }
        ended = data.draw(st.lists(st.sampled_from(ids), unique=True))
        for item_id in ended:
            if item_id in lease_of:
                lease_id = lease_of.pop(item_id)
                if data.draw(st.booleans()):
                    assert rig.remove([item_id], lease_id) == [True]
                else:
                    assert rig.release([item_id], lease_id) == [True]
        asked = data.draw(st.permutations([*ids, b"\xff" * 16, bytes(16)]))

        found = rig.queue.leases.find(asked)

        assert dict(found) == lease_of
        assert len(found) == len(lease_of)
        rig.assert_sound()
    finally:
        rig.close()
