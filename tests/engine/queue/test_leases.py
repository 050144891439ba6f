"""Taking items out of leases: only what a live lease holds, and the lease keeps the rest."""

import pytest

from queueber.db.families import Family
from queueber.db.records.leases import decode_lease
from queueber.db.records.runs import decode_held
from queueber.engine.queue.leases import Taken
from queueber.model import LeaseInfo
from tests.engine.making import counters_aside, run_of
from tests.support.operations import run
from tests.support.rig import Rig


def take(rig: Rig, ids: list[bytes], leases: list[bytes]) -> Taken:
    """What was taken; it is nowhere then, so the store is not sound."""
    return run(rig.engine, rig.queue, rig.now_ms, rig.queue.leases.take, ids, leases)


def test_take_of_all_that_a_lease_holds_ends_the_lease(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb")
    lease_id = rig.poll(2).lease_id

    assert take(rig, ids, [lease_id] * 2) == Taken([run_of(ids, 3)], [True, True], is_in_order=True)

    for family in (Family.LEASES, Family.LEASE_EXPIRY, Family.HOLDERS):
        assert rig.keys(family) == []
    assert (rig.stats().leased, rig.stats().leases) == (0, 0)
    assert rig.stored_ids() == ids, "where the items go is up to the caller"


def test_take_of_some_leaves_the_lease_with_the_rest_in_order(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb", b"ccc")
    lease_id = rig.poll(3, lease_ms=500).lease_id

    taken = run_of([ids[1]], 2, at=1, span=3)
    assert take(rig, [ids[1]], [lease_id]) == Taken([taken], [True])

    ((key, entry),) = rig.dump()["leases"]
    expires_at_ms, held = decode_lease(entry)
    assert (key[4:], expires_at_ms) == (lease_id, rig.now_ms + 500)
    assert decode_held(held) == [run_of(ids[:1], 1, span=3), run_of(ids[2:], 3, at=2)]
    assert rig.keys(Family.HOLDERS) == [rig.queue.prefix + ids[2] + lease_id]
    assert (rig.stats().leased, rig.stats().leases) == (2, 1)


def test_take_of_an_id_named_twice_gives_it_once(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    lease_id = rig.poll().lease_id

    taken = Taken([run_of([item_id], 1)], [True, False])
    assert take(rig, [item_id, item_id], [lease_id] * 2) == taken

    assert rig.stats().leased == 0


def test_take_under_several_leases_answers_in_the_order_asked(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb", b"ccc", b"dddd")
    one, two = (polled.lease_id for polled in rig.poll_many([2, 2]))

    taken = take(rig, [ids[3], ids[0], ids[1], bytes(16)], [two, two, one, one])

    assert taken == Taken(
        [run_of(ids[3:], 4, at=3), run_of(ids[1:2], 2, at=1, span=4)], [True, False, True, False]
    )
    assert [item_id for item_id, _ in rig.held()] == [ids[0], ids[2]]
    assert (rig.stats().leased, rig.stats().leases) == (2, 2)


@pytest.mark.parametrize("passed_ms", [100, 101])
def test_take_from_a_lease_that_ran_out_takes_nothing(rig: Rig, passed_ms: int) -> None:
    ids = rig.add(b"a", b"b")
    lease_id = rig.poll(2, lease_ms=100).lease_id
    rig.now_ms += passed_ms
    before = counters_aside(rig)

    assert take(rig, ids, [lease_id] * 2) == Taken([], [False, False])
    assert take(rig, ids, [lease_id, bytes(16)]) == Taken([], [False, False])

    assert counters_aside(rig) == before
    rig.assert_sound()


def test_take_with_the_lease_of_another_or_of_nobody_takes_nothing(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    one, two = (polled.lease_id for polled in rig.poll_many([1, 1]))
    before = counters_aside(rig)

    assert take(rig, ids, [two, one]) == Taken([], [False, False])
    assert take(rig, ids, [bytes(16)] * 2) == Taken([], [False, False])

    assert counters_aside(rig) == before
    rig.assert_sound()


def test_take_from_any_lease_asks_for_no_time(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb")
    lease_id = rig.poll(2, lease_ms=100).lease_id
    rig.now_ms += 5000
    held = [(ids[1], lease_id), (bytes(16), lease_id)]

    taken = run(rig.engine, rig.queue, rig.now_ms, rig.queue.leases.take_from_any, held)

    assert taken == [run_of(ids[1:], 2, at=1)]
    assert [item_id for item_id, _ in rig.held()] == [ids[0]]


def test_take_from_any_lease_of_nothing_is_nothing(rig: Rig) -> None:
    take = rig.queue.leases.take_from_any

    assert run(rig.engine, rig.queue, rig.now_ms, take, []) == []


# --- the list of leases ---------------------------------------------------------------------------


def test_leases_are_listed_oldest_first_with_what_they_still_hold(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb", b"ccc")
    polled_at_ms = rig.now_ms
    one = rig.poll(2, lease_ms=500).lease_id
    rig.now_ms += 5
    two = rig.poll(1, lease_ms=100).lease_id
    rig.remove([ids[0]], one)

    assert rig.queue.leases.page(b"", 10) == (
        [
            LeaseInfo(one, "", 1, polled_at_ms + 500, polled_at_ms),
            LeaseInfo(two, "", 1, polled_at_ms + 105, polled_at_ms + 5),
        ],
        False,
    )


def test_a_page_of_leases_begins_behind_the_last_of_the_page_before(rig: Rig) -> None:
    rig.add(*[b"x"] * 5)
    leases = [rig.poll().lease_id for _ in range(5)]

    pages = [rig.queue.leases.page(after, 2) for after in (b"", leases[1], leases[3], leases[4])]

    assert [([each.lease_id for each in page], more) for page, more in pages] == [
        (leases[:2], True),
        (leases[2:4], True),
        (leases[4:], False),
        ([], False),
    ]


def test_a_lease_that_has_expired_is_listed_until_it_is_swept(rig: Rig) -> None:
    rig.add(b"x")
    lease = rig.poll(lease_ms=100).lease_id
    rig.now_ms += 1000

    assert [each.lease_id for each in rig.queue.leases.page(b"", 10)[0]] == [lease]
    rig.sweep_all()
    assert rig.queue.leases.page(b"", 10) == ([], False)
