"""Expire together: the leases of a holder that is gone end before their time, as one."""

from dataclasses import replace

import pytest

from queueber.db.families import Family
from queueber.db.records.runs import MarkFields
from queueber.model import AttemptEnd
from tests.engine.making import come_back_at_once
from tests.support.ending import expire_together
from tests.support.entries import history_of
from tests.support.operations import configure_queue, expire
from tests.support.rig import QUEUE, Rig


def ready_marks(rig: Rig) -> list[MarkFields]:
    """Of each item, in the order of the index."""
    return rig.marks(Family.VISIBILITY_INDEX)


def test_expire_together_gives_the_items_back_before_their_time(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(2, lease_ms=60_000)
    rig.now_ms += 5

    assert expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms) == 2

    assert rig.ready_ids() == [ids[2], ids[0], ids[1]]
    assert rig.dump()["leases"] == rig.dump()["lease_expiry"] == []
    rig.assert_sound()


def test_expire_together_leaves_other_leases_alone(rig: Rig) -> None:
    rig.add(b"a", b"b")
    one, two = rig.poll_many([1, 1])

    expire_together(rig.engine, rig.queue, [one.lease_id], rig.now_ms)

    assert rig.remove(two.ids, two.lease_id) == [True]
    rig.assert_sound()


def test_expire_together_twice_moves_nothing_the_second_time(rig: Rig) -> None:
    rig.add(b"a")
    polled = rig.poll()
    expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms)
    disk, memory = rig.dump(), rig.memory()

    assert expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms) == 0

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_expire_together_of_an_unknown_lease_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    rig.poll()
    disk, memory = rig.dump(), rig.memory()

    assert expire_together(rig.engine, rig.queue, [bytes(16)], rig.now_ms) == 0

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_expire_together_after_the_clock_stepped_back_keeps_the_store_sound(rig: Rig) -> None:
    """The items become visible before the low mark of the index."""
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(2)
    rig.now_ms -= 5000

    expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms)

    rig.assert_sound()
    assert [list(polled.ids) for polled in rig.poll_many([3, 3, 3])] == [[each] for each in ids]


@pytest.mark.parametrize("counts", [[4], [2, 2], [1, 1, 1, 1], [3, 1]])
def test_expire_together_halves_the_company_of_all_that_the_holder_held(
    rig: Rig, counts: list[int]
) -> None:
    """However many leases it was spread over: any of them may be why the holder died."""
    rig.add(*[b"x"] * 4)
    leases = [polled.lease_id for polled in rig.poll_many(counts)]

    assert expire_together(rig.engine, rig.queue, leases, rig.now_ms) == 4

    assert ready_marks(rig) == [MarkFields(group_max=2, uncharged=1)] * 4
    assert rig.dump()["leases"] == rig.dump()["lease_expiry"] == rig.dump()["attempts"] == []
    assert (rig.stats().leases, rig.stats().expired_total, rig.stats().failed_total) == (0, 4, 0)
    rig.assert_sound()


def test_expire_together_of_one_item_in_one_lease_charges_it(rig: Rig) -> None:
    come_back_at_once(rig)
    rig.add(b"x")
    polled = rig.poll()

    assert expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms) == 1

    assert ready_marks(rig) == [MarkFields(attempts=1)]
    history = history_of([rig.now_ms], "its worker lost the connection", AttemptEnd.DISCONNECTED)
    assert rig.dump()["attempts"] == [(rig.queue.prefix + polled.ids[0], history)]
    rig.assert_sound()


def test_expire_together_without_isolation_only_counts_the_lease(rig: Rig) -> None:
    """As old clients expect it: a lapsed lease of 8 comes back as 8."""
    settings = replace(rig.queue.settings, isolation=False)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
    ids = rig.add(*[b"x"] * 8)
    for _ in range(3):
        polled = rig.poll(8)
        assert polled.ids == ids

        assert expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms) == 8

    assert ready_marks(rig) == [MarkFields(uncharged=3)] * 8
    assert rig.queue.counters.quarantined == 0
    rig.assert_sound()


def test_expire_together_passes_over_leases_that_are_gone(rig: Rig) -> None:
    """One of three is done, and of the two others only one item is left."""
    come_back_at_once(rig)
    ids = rig.add(b"a", b"b", b"c")
    one, two = rig.poll_many([1, 2])
    rig.complete(one.ids, one.lease_id)
    rig.remove(ids[1:2], two.lease_id)

    moved = expire_together(
        rig.engine, rig.queue, [one.lease_id, bytes(16), two.lease_id], rig.now_ms
    )

    assert moved == 1
    assert ready_marks(rig) == [MarkFields(attempts=1)]
    assert rig.keys(Family.ATTEMPTS) == [rig.queue.prefix + ids[2]]
    rig.assert_sound()


def test_leases_that_merely_run_out_together_are_not_one(rig: Rig) -> None:
    come_back_at_once(rig)
    rig.add(b"a", b"b")
    rig.poll_many([1, 1], lease_ms=50)
    rig.now_ms += 50

    expire(rig.engine, rig.queue, rig.now_ms, 100)

    assert ready_marks(rig) == [MarkFields(attempts=1)] * 2


def test_suspects_are_counted_once_until_they_end_or_die(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * 4)
    expire_together(rig.engine, rig.queue, [rig.poll(4).lease_id], rig.now_ms)
    assert rig.queue.counters.quarantined == 4
    polled = rig.poll(2)
    expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms)
    assert rig.queue.counters.quarantined == 4

    polled = rig.poll(2)
    rig.complete(polled.ids[:1], polled.lease_id)

    assert rig.queue.counters.quarantined == 3
    assert set(polled.ids) <= set(ids)
    rig.assert_sound()


def test_expire_together_of_many_leases_counts_all_of_them_as_one_company(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end a slice at a time; what each item was held with does not depend on the slices."""
    monkeypatch.setattr("tests.support.ending.SWEEP_SLICE_ITEMS", 2)
    rig.add(*[b"x"] * 7)
    leases = [polled.lease_id for polled in rig.poll_many([1, 2, 1, 1, 2])]

    assert expire_together(rig.engine, rig.queue, leases, rig.now_ms) == 7

    assert ready_marks(rig) == [MarkFields(group_max=3, uncharged=1)] * 7
    assert rig.queue.counters.quarantined == 7
    rig.assert_sound()


def test_expire_together_of_no_leases_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    disk, memory = rig.dump(), rig.memory()

    assert expire_together(rig.engine, rig.queue, [], rig.now_ms) == 0

    assert rig.dump() == disk
    assert rig.memory() == memory
