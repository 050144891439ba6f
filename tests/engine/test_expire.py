"""Expire: leases that ran out give their items back, a bounded slice at a time."""

from queueber.db.families import Family
from queueber.db.keys import NEVER_MS, due_part
from queueber.engine.expire import expire, expire_lease
from tests.support.rig import Rig

MANY = 10_000


def test_expire_before_anything_is_due_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    rig.poll(lease_ms=100)
    rig.now_ms += 99
    disk, memory = rig.dump(), rig.memory()

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (0, rig.now_ms + 1)

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_expire_without_leases_is_never_due(rig: Rig) -> None:
    rig.add(b"a")

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (0, NEVER_MS)


def test_expire_at_the_very_millisecond_makes_items_ready_now(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb")
    rig.poll(2, lease_ms=100)
    rig.now_ms += 100

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (2, NEVER_MS)

    assert rig.dump()["visibility_index"] == [
        (rig.queue.prefix + due_part(rig.now_ms, ids[0]), b"\0\0\0\1"),
        (rig.queue.prefix + due_part(rig.now_ms, ids[1]), b"\0\0\0\2"),
    ]
    for family in (Family.IN_PROGRESS, Family.LEASES, Family.LEASE_EXPIRY):
        assert rig.keys(family) == []
    assert rig.stats().expired_total == 2
    rig.assert_sound()


def test_expire_leaves_live_leases_and_says_when_the_next_is_due(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    rig.poll(lease_ms=50)
    alive = rig.poll(lease_ms=80)
    rig.now_ms += 60

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (1, rig.now_ms + 20)

    assert rig.ready_ids() == ids[:1]
    assert rig.remove(alive.ids, alive.lease_id) == [True]
    rig.assert_sound()


def test_expire_gives_back_only_what_the_lease_still_holds(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(3, lease_ms=50)
    rig.remove([ids[1]], polled.lease_id)
    rig.now_ms += 50

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY)[0] == 2

    assert rig.ready_ids() == [ids[0], ids[2]]
    rig.assert_sound()


def test_expire_of_many_due_leases_stops_at_items_max_and_goes_on(rig: Rig) -> None:
    rig.add(*[b"x"] * 25)
    rig.poll_many([1] * 25, lease_ms=50)
    rig.now_ms += 50
    moved = []

    while (slice_ := expire(rig.engine, rig.queue, rig.now_ms, 10))[0]:
        moved.append(slice_[0])
        rig.assert_sound()
        if rig.stats().leases:
            assert slice_[1] <= rig.now_ms, "there is more to do now"

    assert moved == [10, 10, 5]
    assert rig.stats().ready == 25


def test_expire_of_leases_of_several_items_passes_items_max_by_less_than_a_lease(
    rig: Rig,
) -> None:
    rig.add(*[b"x"] * 30)
    rig.poll_many([7, 7, 7, 7], lease_ms=50)
    rig.now_ms += 50

    moved = [expire(rig.engine, rig.queue, rig.now_ms, 10)[0] for _ in range(3)]

    assert moved == [14, 14, 0]
    rig.assert_sound()


def test_expire_of_one_lease_larger_than_a_slice_moves_it_whole(rig: Rig) -> None:
    """A lease ends in one batch: half a lease would hold items that are ready."""
    rig.add(*[b"x"] * 500)
    rig.poll(500, lease_ms=50)
    rig.now_ms += 50

    assert expire(rig.engine, rig.queue, rig.now_ms, 10) == (500, NEVER_MS)

    rig.assert_sound()


def test_expire_of_leases_at_different_times_takes_the_earliest_first(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    for lease_ms in (300, 100, 200):
        rig.poll(lease_ms=lease_ms)
    rig.now_ms += 300

    order = []
    for _ in range(3):
        expire(rig.engine, rig.queue, rig.now_ms, 1)
        order += [each for each in rig.ready_ids() if each not in order]

    assert order == [ids[1], ids[2], ids[0]]


def test_expire_after_every_lease_was_removed_finds_nothing_and_is_never_due(rig: Rig) -> None:
    """The time of the earliest lease is remembered although the lease is gone."""
    rig.add(b"a")
    polled = rig.poll(lease_ms=50)
    rig.remove(polled.ids, polled.lease_id)
    rig.now_ms += 50
    disk = rig.dump()

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (0, NEVER_MS)

    assert rig.dump() == disk


def test_expire_after_the_due_lease_was_removed_says_when_the_other_is_due(rig: Rig) -> None:
    rig.add(b"a", b"b")
    polled = rig.poll(lease_ms=50)
    rig.poll(lease_ms=90)
    rig.remove(polled.ids, polled.lease_id)
    rig.now_ms += 50

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (0, rig.now_ms + 40)

    assert rig.queue.counters.lease_due_ms == rig.now_ms + 40
    rig.assert_sound()


def test_expire_after_the_clock_stepped_back_waits_for_its_time(rig: Rig) -> None:
    rig.add(b"a")
    rig.poll(lease_ms=100)
    due_ms = rig.now_ms + 100
    rig.now_ms -= 5000

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (0, due_ms)
    assert expire(rig.engine, rig.queue, due_ms, MANY) == (1, NEVER_MS)


def test_expire_of_a_lease_given_after_the_clock_stepped_back_comes_first(rig: Rig) -> None:
    rig.add(b"a", b"b")
    rig.poll(lease_ms=100)
    rig.now_ms -= 5000
    rig.poll(lease_ms=100)
    rig.now_ms += 100

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (1, rig.now_ms + 4900 + 100)
    rig.assert_sound()


# --- one lease, before its time -------------------------------------------------------------------


def test_expire_lease_gives_the_items_back_before_their_time(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(2, lease_ms=60_000)
    rig.now_ms += 5

    assert expire_lease(rig.engine, rig.queue, polled.lease_id, rig.now_ms) == 2

    assert rig.ready_ids() == [ids[2], ids[0], ids[1]]
    assert rig.dump()["leases"] == rig.dump()["lease_expiry"] == []
    rig.assert_sound()


def test_expire_lease_leaves_other_leases_alone(rig: Rig) -> None:
    rig.add(b"a", b"b")
    one, two = rig.poll_many([1, 1])

    expire_lease(rig.engine, rig.queue, one.lease_id, rig.now_ms)

    assert rig.remove(two.ids, two.lease_id) == [True]
    rig.assert_sound()


def test_expire_lease_twice_moves_nothing_the_second_time(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    expire_lease(rig.engine, rig.queue, polled.lease_id, rig.now_ms)
    disk, memory = rig.dump(), rig.memory()

    assert expire_lease(rig.engine, rig.queue, polled.lease_id, rig.now_ms) == 0

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_expire_lease_of_an_unknown_lease_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    rig.poll()
    disk, memory = rig.dump(), rig.memory()

    assert expire_lease(rig.engine, rig.queue, bytes(16), rig.now_ms) == 0

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_expire_lease_after_the_clock_stepped_back_keeps_the_store_sound(rig: Rig) -> None:
    """The items become visible before the low mark of the index."""
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(2)
    rig.now_ms -= 5000

    expire_lease(rig.engine, rig.queue, polled.lease_id, rig.now_ms)

    rig.assert_sound()
    assert rig.poll(3).ids == [*ids[:2], ids[2]]
