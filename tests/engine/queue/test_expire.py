"""Expire: leases that ran out give their items back, a bounded slice at a time."""

import pytest

from queueber.db.families import Family
from queueber.db.records.dead_letters import encode_dead
from queueber.db.records.keys import NEVER_MS, due_part, level_part
from queueber.db.records.runs import (
    MarkFields,
    encode_run,
)
from queueber.engine.queue.fail import backoff_ms
from queueber.engine.queue.lifecycle import DeathReason
from queueber.ids import ItemId
from queueber.model import AttemptEnd, NewItems, QueueSettings
from tests.engine.making import come_back_at_once, run_of
from tests.support.entries import history_of
from tests.support.operations import configure_queue, expire
from tests.support.rig import QUEUE, Rig

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

    key = rig.queue.prefix + level_part(14) + due_part(rig.now_ms, ids[1])
    lost = run_of(ids, 3, MarkFields(group_max=1, uncharged=1))
    assert rig.dump()["visibility_index"] == [(key, encode_run(lost))]
    for family in (Family.LEASES, Family.LEASE_EXPIRY, Family.HOLDERS):
        assert rig.keys(family) == []
    assert rig.stats().expired_total == 2
    rig.assert_sound()


def test_expire_leaves_live_leases_and_says_when_the_next_is_due(rig: Rig) -> None:
    come_back_at_once(rig)
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
    come_back_at_once(rig)
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
    come_back_at_once(rig)
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


# --- who is charged -------------------------------------------------------------------------------


def test_expire_of_an_item_alone_in_its_lease_charges_it_an_attempt(rig: Rig) -> None:
    (item,) = rig.add(b"abc")
    rig.poll(lease_ms=50)
    rig.now_ms += 50

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (1, NEVER_MS)

    key = rig.queue.prefix + item
    assert rig.ready_ids() == []
    assert rig.runs(Family.DELAYED) == [run_of([item], 3, MarkFields(attempts=1))]
    delay_ms = backoff_ms(rig.queue.settings, ItemId(item), 1)
    assert rig.queue.counters.delayed_due_ms == rig.now_ms + delay_ms > rig.now_ms
    assert rig.dump()["attempts"] == [
        (key, history_of([rig.now_ms], "the lease ran out", AttemptEnd.EXPIRED))
    ]
    assert (rig.stats().expired_total, rig.stats().failed_total) == (1, 1)
    rig.assert_sound()


def test_expire_of_an_item_at_its_last_attempt_makes_it_a_dead_letter(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(attempts_max=1), rig.now_ms)
    (item,) = rig.add(b"abc")
    rig.poll(lease_ms=50)
    rig.now_ms += 50

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (1, NEVER_MS)

    dead = encode_dead(
        rig.now_ms, DeathReason.EXPIRED.value, run_of([item], 3, MarkFields(attempts=1))
    )
    assert rig.dump()["dead"] == [(rig.queue.prefix + item, dead)]
    assert rig.ready_ids() == rig.keys(Family.DELAYED) == []
    assert (rig.stats().dead, rig.stats().died_total, rig.stats().expired_total) == (1, 1, 1)
    rig.assert_sound()


@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_expire_of_several_together_charges_nobody_and_halves_their_company(
    rig: Rig, count: int
) -> None:
    ids = rig.add(*[b"x"] * count)
    rig.poll(count, lease_ms=50)
    rig.now_ms += 50

    assert expire(rig.engine, rig.queue, rig.now_ms, MANY) == (count, NEVER_MS)

    halved = run_of(ids, count, MarkFields(group_max=count // 2, uncharged=1))
    assert rig.runs(Family.VISIBILITY_INDEX) == [halved]
    assert rig.keys(Family.ATTEMPTS) == []
    assert rig.stats().failed_total == 0
    rig.assert_sound()


def test_expire_counts_what_the_lease_still_held(rig: Rig) -> None:
    """Of three, two are done: the last one was alone when the lease ran out."""
    come_back_at_once(rig)
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(3, lease_ms=50)
    rig.complete(ids[:2], polled.lease_id)
    rig.now_ms += 50

    expire(rig.engine, rig.queue, rig.now_ms, MANY)

    alone = run_of(ids[2:], 1, MarkFields(attempts=1), at=2)
    assert rig.runs(Family.VISIBILITY_INDEX) == [alone]
    rig.assert_sound()


def test_expire_of_leases_of_one_and_of_several_at_once_treats_each_by_itself(rig: Rig) -> None:
    come_back_at_once(rig)
    ids = rig.add(b"a", b"b", b"c")
    rig.poll_many([1, 2], lease_ms=50)
    rig.now_ms += 50

    expire(rig.engine, rig.queue, rig.now_ms, MANY)

    assert rig.runs(Family.VISIBILITY_INDEX) == [
        run_of(ids[:1], 1, MarkFields(attempts=1), span=3),
        run_of(ids[1:], 2, MarkFields(group_max=1, uncharged=1), at=1),
    ]
    assert rig.keys(Family.ATTEMPTS) == [rig.queue.prefix + ids[0]]
    rig.assert_sound()


def test_expire_keeps_priority_batch_and_attempts(rig: Rig) -> None:
    items = NewItems([b"a", b"b"], priorities=[9, 9], batch="b", keys=["k", ""])
    ids = rig.add_items(items).ids
    first = rig.poll(2, lease_ms=50)
    rig.fail(first.ids, first.lease_id, delay_ms=0)
    rig.poll(2, lease_ms=50)
    rig.now_ms += 50

    expire(rig.engine, rig.queue, rig.now_ms, MANY)

    mark = MarkFields(batch=1, attempts=1, group_max=1, priority=9, flags=1, uncharged=1)
    assert rig.runs(Family.VISIBILITY_INDEX) == [run_of(ids, 3, mark)]
    rig.assert_sound()
