"""Add: all of it or none of it, in order, within the queue's limits."""

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import Block, encode_block, pack_attributes
from queueber.db.records.keys import due_part, level_part
from queueber.db.records.runs import MarkFields, encode_run
from queueber.errors import ResourceExhausted
from queueber.model import NO_DETAILS, NewItems, QueueSettings
from tests.engine.making import make_dead, run_of
from tests.support.operations import configure_queue, create_queue
from tests.support.rig import QUEUE, Rig

LEVEL = 4
"""Where items of priority 5 are."""


def limit(rig: Rig, settings: QueueSettings) -> None:
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)


def test_add_returns_rising_ids_in_the_order_of_the_contents(rig: Rig) -> None:
    contents = [b"c", b"a", b"b", b"a"]

    ids = rig.add(*contents)

    ((key, value),) = rig.dump()["items"]
    assert ids == sorted(set(ids)) == rig.stored_ids()
    assert key == rig.queue.prefix + ids[-1]
    assert Block(value).contents(0, 4) == contents
    rig.assert_sound()


def test_add_without_delays_makes_every_item_ready_now(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb")

    key = rig.queue.prefix + level_part(LEVEL) + due_part(rig.now_ms, ids[1])
    assert rig.dump()["visibility_index"] == [(key, encode_run(run_of(ids, 3)))]
    assert rig.keys(Family.DELAYED) == rig.keys(Family.PLACES) == []
    assert rig.memory().queues[QUEUE][2].last_id == ids[-1]


def test_add_with_delays_of_zero_is_add_without_delays(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", delays_ms=[0, 0])

    assert rig.runs(Family.VISIBILITY_INDEX) == [run_of(ids, 2)]
    assert rig.keys(Family.DELAYED) == []


def test_add_with_mixed_delays_puts_each_item_where_its_delay_says(rig: Rig) -> None:
    ids = rig.add(b"now", b"late", b"now too", b"soon", delays_ms=[0, 500, 0, 20])

    assert rig.runs(Family.VISIBILITY_INDEX) == [
        run_of(ids[:1], 3, span=4),
        run_of(ids[2:3], 7, at=2, span=4),
    ]
    assert rig.dump()["delayed"] == [
        (
            rig.queue.prefix + due_part(rig.now_ms + 20, ids[3]),
            encode_run(run_of(ids[3:], 4, at=3)),
        ),
        (
            rig.queue.prefix + due_part(rig.now_ms + 500, ids[1]),
            encode_run(run_of(ids[1:2], 4, at=1, span=4)),
        ),
    ]
    assert rig.engine.agenda.next_ms() == rig.now_ms + 20
    rig.assert_sound()


def test_add_of_a_delay_due_later_leaves_the_agenda_at_the_earlier(rig: Rig) -> None:
    rig.add(b"a", delays_ms=[20])
    rig.add(b"b", delays_ms=[30])

    assert rig.engine.agenda.next_ms() == rig.now_ms + 20


def test_add_of_empty_contents_stores_an_empty_item(rig: Rig) -> None:
    rig.add(b"", b"")

    assert list(rig.poll(2).contents) == [b"", b""]
    rig.assert_sound()


def test_add_to_one_queue_leaves_another_as_it_was(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    other = rig.engine.queues.get("other")
    before = rig.memory().queues["other"]

    rig.add(b"a", delays_ms=[5])

    assert rig.memory().queues["other"] == before
    assert not [key for key in rig.keys(Family.ITEMS) if key.startswith(other.prefix)]


# --- columns --------------------------------------------------------------------------------------


def test_add_with_every_column_writes_each_item_with_its_own(rig: Rig) -> None:
    ids = rig.add_items(
        NewItems(
            [b"a", b"bb"],
            delays_ms=[0, 50],
            priorities=[9, 0],
            keys=["k", ""],
            attributes=[{"n": "ö"}, {}],
            batch="b",
        )
    ).ids

    packed = pack_attributes({"n": "ö"})
    block = encode_block([b"a", b"bb"], [b"k", b""], [packed, b""])
    assert rig.dump()["items"] == [(rig.queue.prefix + ids[1], block)]
    high = run_of(ids[:1], 2 + len(packed), MarkFields(batch=1, priority=9, flags=1), span=2)
    assert rig.dump()["visibility_index"] == [
        (rig.queue.prefix + level_part(0) + due_part(rig.now_ms, ids[0]), encode_run(high))
    ]
    low = run_of(ids[1:], 2, MarkFields(batch=1, priority=0, flags=1), at=1)
    assert rig.dump()["delayed"] == [
        (rig.queue.prefix + due_part(rig.now_ms + 50, ids[1]), encode_run(low))
    ]
    assert rig.stats().contents_bytes == high.size + 2
    rig.assert_sound()


def test_add_with_columns_that_say_nothing_is_a_plain_add(rig: Rig) -> None:
    ids = rig.add_items(
        NewItems([b"a", b"b"], [0, 0], priorities=[5, 5], keys=["", ""], attributes=[{}, {}])
    ).ids

    assert rig.dump()["items"] == [(rig.queue.prefix + ids[1], encode_block([b"a", b"b"]))]
    key = rig.queue.prefix + level_part(LEVEL) + due_part(rig.now_ms, ids[1])
    assert rig.dump()["visibility_index"] == [(key, encode_run(run_of(ids, 2)))]
    assert rig.keys(Family.KEYS) == rig.keys(Family.FORGET) == []
    assert rig.poll(2).details == NO_DETAILS
    rig.assert_sound()


def test_add_of_delayed_items_keeps_their_places_until_they_are_polled(rig: Rig) -> None:
    (item_id,) = rig.add(b"a", delays_ms=[50])
    place = [(rig.queue.prefix + item_id, (rig.now_ms + 50).to_bytes(8))]
    assert rig.dump()["places"] == place

    rig.now_ms += 60
    rig.sweep_all()
    assert rig.dump()["places"] == place

    rig.poll()
    assert rig.dump()["places"] == []
    rig.assert_sound()


def test_add_up_to_bytes_max_counts_keys_and_attributes(rig: Rig) -> None:
    limit(rig, QueueSettings(bytes_max=10))
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=r"holds 0 bytes; 11 more .* limit of 10"):
        rig.add_items(NewItems([b"12345"], keys=["123456"], batch="b"))

    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.add_items(NewItems([b"12345"], keys=["12345"], batch="b"))
    rig.assert_sound()


# --- limits of the queue --------------------------------------------------------------------------


def test_add_up_to_items_max_is_taken_and_one_more_is_refused(rig: Rig) -> None:
    """Items of every state count: ready, delayed, in progress and dead."""
    make_dead(rig, NewItems([b"dead"]))
    limit(rig, QueueSettings(items_max=4))
    rig.add(b"a", b"b", delays_ms=[0, 50])
    rig.poll(1)
    rig.add(b"c")
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=r"'q' holds 4 items; 1 more .* limit of 4"):
        rig.add(b"d")

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_add_of_several_past_items_max_stores_none_of_them(rig: Rig) -> None:
    limit(rig, QueueSettings(items_max=3))
    rig.add(b"a", b"b")
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=r"holds 2 items; 2 more"):
        rig.add(b"c", b"d", delays_ms=[0, 9])

    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.add(b"c")


def test_add_after_a_remove_has_room_again(rig: Rig) -> None:
    limit(rig, QueueSettings(items_max=1, bytes_max=4))
    rig.add(b"full")
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)

    rig.add(b"next")

    rig.assert_sound()


def test_add_up_to_bytes_max_is_taken_and_one_byte_more_is_refused(rig: Rig) -> None:
    limit(rig, QueueSettings(bytes_max=10))
    rig.add(b"12345", delays_ms=[50])
    rig.add(b"123", b"4")
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=r"'q' holds 9 bytes; 2 more .* limit of 10"):
        rig.add(b"1", b"2")

    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.add(b"1")


def test_add_of_an_item_over_item_bytes_max_stores_none_of_the_call(rig: Rig) -> None:
    limit(rig, QueueSettings(item_bytes_max=3))
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=r"contents: an item has 4 bytes; .*'q' is 3"):
        rig.add(b"123", b"1234", b"1")

    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.add(b"123")


def test_add_after_the_clock_stepped_back_is_polled_first(rig: Rig) -> None:
    (later,) = rig.add(b"later")
    assert rig.poll(1).ids == [later]
    (late,) = rig.add(b"late")
    rig.now_ms -= 5000

    (early,) = rig.add(b"early")

    assert early > late
    rig.assert_sound()
    assert rig.poll(2).ids == [early, late]
