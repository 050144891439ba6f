"""Caps by an attribute: items that must wait are parked, and let go in their order."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from queueber.db.families import Family
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.errors import FailedPrecondition
from queueber.model import NOTHING_POLLED, ItemState, NewItems, Polled, QueueSettings
from tests.support.operations import cancel, configure_queue, peek, purge
from tests.support.rig import QUEUE, Rig

CAPPED = QueueSettings(cap_by="who", cap_by_concurrency_max=2, backoff_ms=(0,), isolation=False)


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig(CAPPED)
    yield made
    made.close()


def add(rig: Rig, whos: str, **columns: Any) -> list[bytes]:
    """An item for each letter; one that is a dot has no cap key. Contents are letter and number."""
    contents = [f"{who}{at}".encode() for at, who in enumerate(whos)]
    attributes = [{} if who == "." else {"who": who} for who in whos]
    return list(rig.add_items(NewItems(contents, attributes=attributes, **columns)).ids)


def told(polled: Polled) -> str:
    return " ".join(each.decode() for each in polled.contents)


def set_cap(rig: Rig, cap: int) -> None:
    settings = replace(rig.queue.settings, cap_by_concurrency_max=cap)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)


def test_polls_pass_over_a_key_at_its_cap(rig: Rig) -> None:
    add(rig, "aaaab.ab")

    assert told(rig.poll(100)) == "a0 a1 b4 .5 b7"
    assert rig.poll(100) == NOTHING_POLLED
    assert (rig.stats().ready, rig.stats().parked, rig.stats().leased) == (3, 3, 5)
    rig.assert_sound()


def test_a_poll_gets_as_many_as_it_asks_for_behind_those_that_wait(rig: Rig) -> None:
    add(rig, "a" * 50 + "b")

    assert told(rig.poll(3)) == "a0 a1 b50"


def test_items_that_wait_are_met_once(rig: Rig) -> None:
    add(rig, "a" * 50)
    rig.poll(3)
    disk = rig.dump()

    assert rig.poll(3) == NOTHING_POLLED

    assert rig.dump() == disk
    assert rig.queue.leasable(rig.now_ms) == 0


@pytest.mark.parametrize("outcome", ["remove", "complete", "release", "fail", "expire", "cancel"])
def test_whatever_ends_a_lease_lets_the_next_of_its_key_go(rig: Rig, outcome: str) -> None:
    ids = add(rig, "aaaabb")
    polled = rig.poll(2, lease_ms=100)
    assert told(rig.poll(100, lease_ms=1000)) == "b4 b5"
    if outcome == "expire":
        rig.now_ms += 100
        rig.sweep_all()
    elif outcome == "cancel":
        assert cancel(rig.engine, rig.queue, ids[:2], rig.now_ms) == [True, True]
    elif outcome == "fail":
        rig.fail(ids[:2], polled.lease_id)
    else:
        getattr(rig, outcome)(ids[:2], polled.lease_id)
    rig.assert_sound()

    assert told(rig.poll(100)) == "a2 a3"
    rig.assert_sound()


def test_waiting_items_of_a_key_go_in_the_order_of_priority_and_time(rig: Rig) -> None:
    set_cap(rig, 1)
    first = add(rig, "a")
    lease = rig.poll(1)
    add(rig, "aaa", priorities=[5, 9, 5])
    rig.poll(10)
    order = []
    for _ in range(3):
        rig.remove(first, lease.lease_id)
        lease = rig.poll(10)
        first = list(lease.ids)
        order.append(told(lease))

    assert order == ["a1", "a0", "a2"]


def test_a_later_item_does_not_overtake_those_that_wait(rig: Rig) -> None:
    ids = add(rig, "aaa")
    lease = rig.poll(3)
    assert told(lease) == "a0 a1"
    rig.remove(ids[:1], lease.lease_id)
    rig.now_ms += 1
    add(rig, "a")

    assert told(rig.poll(10)) == "a2"
    assert rig.poll(10) == NOTHING_POLLED


def test_an_item_that_was_let_go_and_is_cancelled_gives_its_slot_to_the_next(rig: Rig) -> None:
    ids = add(rig, "aaaa")
    lease = rig.poll(4)
    rig.remove(ids[:1], lease.lease_id)

    assert cancel(rig.engine, rig.queue, [ids[2]], rig.now_ms) == [True]
    rig.assert_sound()
    assert told(rig.poll(4)) == "a3"


@pytest.mark.parametrize("state", list(ItemState))
def test_purge_leaves_no_slot_behind(rig: Rig, state: ItemState) -> None:
    ids = add(rig, "aaaaaa")
    lease = rig.poll(4)
    rig.remove(ids[:1], lease.lease_id)
    while purge(rig.engine, rig.queue, state, 2, rig.now_ms)[1]:
        rig.assert_sound()
    rig.assert_sound()


def test_parked_items_are_ready_to_whoever_looks(rig: Rig) -> None:
    ids = add(rig, "aaaa")
    rig.poll(4)
    rig.reopen()

    page, _ = peek(rig.engine, rig.queue, ItemState.READY, b"", 10, 1 << 20)
    assert [each.id for each in page] == ids[2:]
    assert cancel(rig.engine, rig.queue, ids[2:], rig.now_ms) == [True, True]
    assert rig.store.scan(Family.PARKED, b"", b"\xff" * 8, 1) == []
    rig.assert_sound()


def test_a_cap_that_is_raised_lets_go_of_as_many(rig: Rig) -> None:
    add(rig, "a" * 6)
    rig.poll(10)
    set_cap(rig, 4)
    rig.assert_sound()
    rig.sweep_all()

    assert told(rig.poll(10)) == "a2 a3"
    rig.assert_sound()


def test_a_cap_that_is_taken_away_lets_all_go_however_many(rig: Rig) -> None:
    whos = "".join("abc"[at % 3] for at in range(60))
    add(rig, whos)
    rig.poll(100)
    set_cap(rig, 0)
    rig.reopen()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queueber.engine.caps.key_changes.CAP_MOVED_MAX", 4)
        rig.sweep_all()

    assert rig.stats().parked == 0
    assert rig.poll(100).count == 54
    rig.assert_sound()


def test_a_cap_that_is_lowered_takes_nothing_back(rig: Rig) -> None:
    ids = add(rig, "aaa")
    lease = rig.poll(3)
    set_cap(rig, 1)
    rig.remove(ids[:1], lease.lease_id)

    assert rig.poll(3) == NOTHING_POLLED
    rig.remove(ids[1:2], lease.lease_id)
    assert told(rig.poll(3)) == "a2"


def test_items_that_were_leased_before_there_was_a_cap_hold_no_slot(rig: Rig) -> None:
    set_cap(rig, 0)
    add(rig, "aaaa")
    rig.poll(2)
    set_cap(rig, 1)

    assert told(rig.poll(10)) == "a2"
    rig.assert_sound()


def test_the_attribute_cannot_be_changed_while_items_hold_slots(rig: Rig) -> None:
    ids = add(rig, "a")
    lease = rig.poll(1)
    other = replace(rig.queue.settings, cap_by="other")
    disk = rig.dump()

    with pytest.raises(FailedPrecondition, match="capBy: 1 items of queue 'q' are leased or"):
        configure_queue(rig.engine, QUEUE, other, rig.now_ms)

    assert rig.dump() == disk
    rig.remove(ids, lease.lease_id)
    configure_queue(rig.engine, QUEUE, other, rig.now_ms)


def test_one_poll_parks_a_bounded_number_and_has_itself_looked_at_again(rig: Rig) -> None:
    add(rig, "a" * 20 + "b")
    rig.poll(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queueber.engine.caps.parks.CAP_MOVED_MAX", 8)
        assert rig.poll(10) == NOTHING_POLLED
        assert rig.engine.agenda.next_ms() == rig.now_ms
        assert told(rig.poll(10)) == "b20"
    rig.assert_sound()


def test_an_item_larger_than_an_answer_is_given_though_others_were_parked_before_it(
    rig: Rig,
) -> None:
    add(rig, "aaa")
    rig.poll(2)
    big = rig.add_items(NewItems([b"x" * 500])).ids

    assert list(rig.poll(5, bytes_max=100).ids) == list(big)


def test_a_rebuilt_store_has_everything_ready_and_nothing_parked(rig: Rig) -> None:
    add(rig, "aaaa.")
    rig.poll(10)
    ((key, _),) = rig.store.scan(Family.CAP_KEYS, b"", b"\xff" * 8, 10)
    batch = rig.store.batch()
    batch.delete(Family.CAP_KEYS, key)
    rig.store.write(batch)
    assert list(rebuild_store(rig.store))
    rig.reopen()

    rig.assert_sound()
    assert (rig.stats().ready, rig.stats().parked) == (5, 0)
    assert told(rig.poll(10)) == "a0 a1 .4"
