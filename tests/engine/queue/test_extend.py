"""Extend: a live lease gets another expiry, and only one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.leases import decode_lease
from queueber.model import QueueSettings
from tests.engine.making import come_back_at_once
from tests.support.operations import create_queue, extend
from tests.support.rig import Rig


def expiries(rig: Rig) -> list[tuple[int, bytes]]:
    """What the expiry index says, checked against what the leases say."""
    of_index = sorted(
        (int.from_bytes(key[4:12]), key[12:]) for key in rig.keys(Family.LEASE_EXPIRY)
    )
    of_leases = sorted((decode_lease(entry)[0], key[4:]) for key, entry in rig.dump()["leases"])
    assert of_index == of_leases
    return of_index


def test_extend_to_later_moves_the_one_expiry_entry(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll(lease_ms=100)
    rig.now_ms += 50

    assert rig.extend(polled.lease_id, 200)

    assert expiries(rig) == [(rig.now_ms + 200, polled.lease_id)]
    rig.assert_sound()


def test_extend_to_later_keeps_the_item_past_its_first_expiry(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll(lease_ms=100)
    rig.extend(polled.lease_id, 300)
    rig.now_ms += 299

    assert [s.expired for s in rig.sweep_all()] == [0]
    assert rig.remove(polled.ids, polled.lease_id) == [True]


def test_extend_to_earlier_expires_the_item_earlier(rig: Rig) -> None:
    come_back_at_once(rig)
    (item,) = rig.add(b"a")
    polled = rig.poll(lease_ms=10_000)

    assert rig.extend(polled.lease_id, 30)

    assert expiries(rig) == [(rig.now_ms + 30, polled.lease_id)]
    assert rig.engine.agenda.next_ms() == rig.now_ms + 30
    rig.now_ms += 30
    assert [s.expired for s in rig.sweep_all()] == [1]
    assert rig.ready_ids() == [item]


def test_extend_to_the_same_time_leaves_one_entry(rig: Rig) -> None:
    """The delete and the put of one batch name the same key; the put must win."""
    rig.add(b"a")
    polled = rig.poll(lease_ms=100)

    assert rig.extend(polled.lease_id, 100)

    assert rig.keys(Family.LEASE_EXPIRY) == [
        rig.queue.prefix + due_part(rig.now_ms + 100, polled.lease_id)
    ]
    rig.assert_sound()


def test_extend_of_an_unknown_lease_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    rig.poll()
    disk, memory = rig.dump(), rig.memory()

    assert not rig.extend(bytes(16), 500)

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_extend_through_another_queue_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    disk, memory = rig.dump(), rig.memory()

    other = rig.engine.queues.get("other")

    assert extend(rig.engine, other, [polled.lease_id], [9], rig.now_ms) == [False]
    assert rig.dump() == disk
    assert rig.memory() == memory


def test_extend_of_an_expired_lease_changes_nothing_before_or_after_the_sweep(rig: Rig) -> None:
    come_back_at_once(rig)
    (item,) = rig.add(b"a")
    polled = rig.poll(lease_ms=100)
    rig.now_ms += 100
    disk, memory = rig.dump(), rig.memory()

    assert not rig.extend(polled.lease_id, 500)

    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.sweep_all()
    assert not rig.extend(polled.lease_id, 500)
    assert rig.ready_ids() == [item]


def test_extend_in_the_last_millisecond_is_accepted(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll(lease_ms=100)
    rig.now_ms += 99

    assert rig.extend(polled.lease_id, 1)
    assert expiries(rig) == [(rig.now_ms + 1, polled.lease_id)]


def test_extend_of_a_lease_whose_items_are_all_removed_is_refused(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)
    disk = rig.dump()

    assert not rig.extend(polled.lease_id, 500)

    assert rig.dump() == disk


def test_extend_of_the_same_lease_twice_takes_the_last_and_counts_once(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    lease = polled.lease_id

    extended = extend(rig.engine, rig.queue, [lease, lease], [50, 900], rig.now_ms)

    assert extended == [True, True]
    assert expiries(rig) == [(rig.now_ms + 900, lease)]
    assert rig.stats().extended_total == 1
    rig.assert_sound()


def test_extend_of_several_answers_for_each(rig: Rig) -> None:
    rig.add(b"a", b"b", b"c")
    dead = rig.poll(lease_ms=10)
    rig.now_ms += 10
    one, two = rig.poll_many([1, 1], lease_ms=500)

    extended = extend(
        rig.engine,
        rig.queue,
        [two.lease_id, dead.lease_id, bytes(16), one.lease_id],
        [700, 1, 2, 600],
        rig.now_ms,
    )

    assert extended == [True, False, False, True]
    assert expiries(rig) == [
        (rig.now_ms, dead.lease_id),
        (rig.now_ms + 600, one.lease_id),
        (rig.now_ms + 700, two.lease_id),
    ]
    rig.assert_sound()


def test_extend_does_not_touch_the_items(rig: Rig) -> None:
    rig.add(b"a", b"b")
    polled = rig.poll(2)
    before = rig.dump()

    rig.extend(polled.lease_id, 9999)

    after = rig.dump()
    moved = {"leases", "lease_expiry", "counters"}
    assert {name for name in before if after[name] != before[name]} == moved


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 200)), min_size=1, max_size=12))
def test_extend_again_and_again_keeps_exactly_one_entry(steps: list[tuple[int, int]]) -> None:
    rig = Rig()
    try:
        rig.add(b"a")
        lease_id = rig.poll(lease_ms=100).lease_id
        expires_at_ms = rig.now_ms + 100
        for passed_ms, lease_ms in steps:
            rig.now_ms += passed_ms
            is_alive = expires_at_ms > rig.now_ms

            assert rig.extend(lease_id, lease_ms) == is_alive

            expires_at_ms = rig.now_ms + lease_ms if is_alive else expires_at_ms
            assert expiries(rig) == [(expires_at_ms, lease_id)]
        assert rig.engine.agenda.next_ms() <= expires_at_ms
        rig.assert_sound()
    finally:
        rig.close()
