"""Poll: what items carry beside their contents comes with them."""

from queueber.limits import ITEM_WIRE_BYTES
from queueber.model import NO_DETAILS, ItemDetails, NewItems
from tests.support.rig import Rig


def test_poll_of_plain_items_says_nothing_of_them(rig: Rig) -> None:
    rig.add(b"a", b"b")

    assert rig.poll(2).details == NO_DETAILS


def test_poll_tells_attempts_keys_batches_and_attributes_of_each_item(rig: Rig) -> None:
    rig.add(b"plain")
    rig.add_items(NewItems([b"keyed", b"named"], keys=["k", ""], attributes=[{}, {"a": "ö"}]))
    rig.add_items(NewItems([b"batched"], batch="b"))
    (failed,) = rig.add_items(NewItems([b"failed"], priorities=[9])).ids
    polled = rig.poll()
    rig.fail([failed], polled.lease_id, delay_ms=0)

    polled = rig.poll(5)

    assert polled.contents == [b"failed", b"plain", b"keyed", b"named", b"batched"]
    assert polled.details == ItemDetails(
        attempts=[2, 1, 1, 1, 1],
        keys=["", "", "k", "", ""],
        batches=["", "", "", "", "b"],
        attributes=[{}, {}, {}, {"a": "ö"}, {}],
    )
    rig.assert_sound()


def test_poll_tells_only_the_columns_of_which_there_is_something_to_say(rig: Rig) -> None:
    rig.add_items(NewItems([b"a", b"b"], priorities=[9, 9]))
    rig.add_items(NewItems([b"c"], keys=["k"]))

    first, second = rig.poll_many([2, 1])

    assert first.details == NO_DETAILS
    assert second.details == ItemDetails(keys=["k"])


def test_poll_of_several_counts_keeps_the_details_with_their_items(rig: Rig) -> None:
    rig.add_items(NewItems([b"a", b"b", b"c"], keys=["1", "2", "3"]))

    answers = rig.poll_many([1, 2])

    assert [answer.details.keys for answer in answers] == [["1"], ["2", "3"]]


def test_poll_counts_key_and_attributes_against_the_limit(rig: Rig) -> None:
    rig.add_items(NewItems([b"x", b"y"], keys=["k" * 100, "l" * 100]))
    exactly_two = 2 * (1 + 100 + ITEM_WIRE_BYTES)

    assert len(rig.poll(2, bytes_max=exactly_two - 1).ids) == 1


def test_poll_counts_the_leases_that_it_gave(rig: Rig) -> None:
    rig.add(b"a", b"b", b"c")

    rig.poll_many([1, 2, 5])

    assert rig.queue.counters.leases_total == 2
    rig.poll()
    assert rig.queue.counters.leases_total == 2, "no items, no lease"
