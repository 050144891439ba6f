"""Remove: only what a live lease holds, and nothing else."""

import pytest

from queueber.db.families import Family
from queueber.db.records.leases import decode_lease
from queueber.db.records.runs import decode_held
from queueber.model import QueueSettings
from tests.engine.making import come_back_at_once, run_of
from tests.support.ending import expire_together
from tests.support.operations import create_queue, remove, remove_whole
from tests.support.rig import Rig


def test_remove_of_a_held_item_leaves_nothing_of_it(rig: Rig) -> None:
    empty = rig.dump()
    rig.add(b"done")
    polled = rig.poll()

    assert rig.remove(polled.ids, polled.lease_id) == [True]

    assert {**rig.dump(), "counters": []} == {**empty, "counters": []}
    assert rig.stats().contents_bytes == 0
    assert rig.stats().removed_total == 1
    rig.assert_sound()


def test_remove_twice_says_no_the_second_time_and_changes_nothing(rig: Rig) -> None:
    rig.add(b"a", b"b")
    polled = rig.poll(2)
    rig.remove(polled.ids[:1], polled.lease_id)
    disk, memory = rig.dump(), rig.memory()

    assert rig.remove(polled.ids[:1], polled.lease_id) == [False]

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_remove_of_the_same_id_twice_in_one_call_counts_once(rig: Rig) -> None:
    rig.add(b"a", b"b")
    polled = rig.poll(2)
    first, second = polled.ids

    removed = rig.remove([first, second, first, second], polled.lease_id)

    assert removed == [True, True, False, False]
    assert rig.stats().removed_total == 2
    rig.assert_sound()


def test_remove_with_an_unknown_lease_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    disk, memory = rig.dump(), rig.memory()

    assert rig.remove(polled.ids, bytes(16)) == [False]
    assert rig.remove([*polled.ids, *polled.ids], bytes(16)) == [False, False]

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_remove_with_the_lease_of_another_item_changes_nothing(rig: Rig) -> None:
    rig.add(b"a", b"b")
    first, second = rig.poll_many([1, 1])
    disk, memory = rig.dump(), rig.memory()

    assert rig.remove(first.ids, second.lease_id) == [False]

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_remove_of_an_id_that_never_was_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    disk = rig.dump()

    assert rig.remove([bytes(16)], polled.lease_id) == [False]

    assert rig.dump() == disk


def test_remove_through_another_queue_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    disk, memory = rig.dump(), rig.memory()

    other = rig.engine.queues.get("other")
    removed = remove(rig.engine, other, polled.ids, [polled.lease_id], rig.now_ms)

    assert removed == [False]
    assert rig.dump() == disk
    assert rig.memory() == memory


@pytest.mark.parametrize("state", ["ready", "delayed"])
def test_remove_of_an_item_that_nobody_holds_changes_nothing(rig: Rig, state: str) -> None:
    rig.add(b"held")
    polled = rig.poll()
    (free,) = rig.add(b"free", delays_ms=[50 if state == "delayed" else 0])
    disk = rig.dump()

    assert rig.remove([free], polled.lease_id) == [False]

    assert rig.dump() == disk


def test_remove_of_some_items_leaves_the_lease_with_the_rest(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb", b"ccc")
    polled = rig.poll(3, lease_ms=500)

    assert rig.remove([ids[1]], polled.lease_id) == [True]

    ((_, entry),) = rig.dump()["leases"]
    expires_at_ms, held = decode_lease(entry)
    assert expires_at_ms == rig.now_ms + 500
    assert decode_held(held) == [run_of(ids[:1], 1, span=3), run_of(ids[2:], 3, at=2)]
    assert rig.stats().contents_bytes == 4
    rig.assert_sound()


def test_remove_of_the_rest_of_a_lease_ends_it(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    polled = rig.poll(2)
    rig.remove(ids[:1], polled.lease_id)

    rig.remove(ids[1:], polled.lease_id)

    assert rig.dump()["leases"] == rig.dump()["lease_expiry"] == []
    assert rig.stats().leases == 0
    rig.assert_sound()


def test_remove_under_several_leases_answers_in_the_order_asked(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c", b"d")
    first, second = rig.poll_many([2, 2])
    one, two = first.lease_id, second.lease_id

    removed = remove(
        rig.engine,
        rig.queue,
        [ids[3], ids[0], ids[0], ids[2], ids[1]],
        [two, two, one, one, one],
        rig.now_ms,
    )

    assert removed == [True, False, True, False, True]
    assert rig.stored_ids() == rig.ids(Family.LEASES) == [ids[2]]
    rig.assert_sound()


def test_remove_in_the_last_millisecond_of_the_lease_is_accepted(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll(lease_ms=100)
    rig.now_ms += 99

    assert rig.remove(polled.ids, polled.lease_id) == [True]


def test_remove_with_expired_lease_keeps_item_until_sweep(rig: Rig) -> None:
    """Whether or not the sweeper has been there must make no difference."""
    ids = rig.add(b"a", b"b")
    polled = rig.poll(2, lease_ms=100)
    rig.now_ms += 100
    disk, memory = rig.dump(), rig.memory()

    assert rig.remove(polled.ids, polled.lease_id) == [False, False]
    assert rig.remove(polled.ids[:1], polled.lease_id) == [False]

    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.sweep_all()
    assert rig.remove(polled.ids, polled.lease_id) == [False, False]
    assert [list(polled.ids) for polled in rig.poll_many([2, 2])] == [[each] for each in ids]


def test_remove_by_the_first_holder_after_another_got_the_item_is_refused(rig: Rig) -> None:
    come_back_at_once(rig)
    rig.add(b"a")
    first = rig.poll(lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()
    second = rig.poll(lease_ms=10)
    disk = rig.dump()

    assert rig.remove(first.ids, first.lease_id) == [False]

    assert rig.dump() == disk
    assert rig.remove(second.ids, second.lease_id) == [True]


def test_remove_after_the_lease_was_given_up_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms)
    disk = rig.dump()

    assert rig.remove(polled.ids, polled.lease_id) == [False]

    assert rig.dump() == disk


# --- whole leases ---------------------------------------------------------------------------------


def test_remove_of_whole_leases_leaves_nothing_of_them(rig: Rig) -> None:
    empty = rig.dump()
    rig.add(b"a", b"b", b"c")
    leases = [polled.lease_id for polled in rig.poll_many([2, 1])]

    assert remove_whole(rig.engine, rig.queue, leases, [2, 1], rig.now_ms) == [True, True]

    assert {**rig.dump(), "counters": []} == {**empty, "counters": []}
    assert (rig.stats().removed_total, rig.stats().leases) == (3, 0)
    rig.assert_sound()


@pytest.mark.parametrize("count", [1, 3])
def test_remove_of_a_lease_that_holds_another_number_of_items_changes_nothing(
    rig: Rig, count: int
) -> None:
    rig.add(b"a", b"b", b"c")
    polled = rig.poll(3)
    rig.remove(polled.ids[:1], polled.lease_id)
    disk, memory = rig.dump(), rig.memory()

    removed = remove_whole(rig.engine, rig.queue, [polled.lease_id], [count], rig.now_ms)

    assert removed == [False]
    assert (rig.dump(), rig.memory()) == (disk, memory)


def test_remove_of_a_whole_lease_that_ran_out_or_never_was_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    lease_id = rig.poll(lease_ms=100).lease_id
    rig.now_ms += 100
    disk, memory = rig.dump(), rig.memory()

    removed = remove_whole(rig.engine, rig.queue, [lease_id, bytes(16)], [1, 1], rig.now_ms)

    assert removed == [False, False]
    assert (rig.dump(), rig.memory()) == (disk, memory)


def test_remove_of_a_whole_lease_named_twice_counts_once_and_spares_others(rig: Rig) -> None:
    rig.add(b"a", b"b", b"c")
    one, two = rig.poll_many([2, 1])

    removed = remove_whole(rig.engine, rig.queue, [one.lease_id] * 2, [2, 2], rig.now_ms)

    assert removed == [True, False]
    assert (rig.stats().removed_total, rig.stats().leases) == (2, 1)
    assert [item_id for item_id, _ in rig.held()] == two.ids
    rig.assert_sound()
