"""Items that wait for others: let go once all of it is done, and dead once one of it is dead."""

from collections.abc import Iterator

import pytest

from queueber.db.records.keys import AWAITING_MS
from queueber.engine.integrity.check_store import check_store
from queueber.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from queueber.model import ItemInfo, ItemOptions, ItemState, NewItems
from tests.engine.making import allow_attempts
from tests.support.operations import cancel, forget_batch, peek, purge, redrive
from tests.support.rig import Rig, refuse_write


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    assert check_store(made.store) == []
    made.close()


def wait_for(
    rig: Rig, *ids: bytes, count: int = 1, after_batch: str = "", batch: str = "",
    delays_ms: list[int] | None = None,
) -> list[bytes]:  # fmt: skip
    items = NewItems(
        [b"later"] * count,
        delays_ms or (),
        priorities=[9] * count,
        batch=batch,
        after=ids,
        after_batch=after_batch,
    )
    return list(rig.add_items(items).ids)


def done(rig: Rig, count: int = 1) -> list[bytes]:
    polled = rig.poll(count)
    assert all(rig.complete(polled.ids, polled.lease_id))
    rig.sweep_all()
    return list(polled.ids)


def seen(rig: Rig, state: ItemState) -> list[ItemInfo]:
    return peek(rig.engine, rig.queue, state, b"", 1000, 1 << 30)[0]


def ids_of(rig: Rig, state: ItemState) -> list[bytes]:
    return sorted(item.id for item in seen(rig, state))


def test_an_item_waits_for_all_that_it_names(rig: Rig) -> None:
    first, second = rig.add(b"a", b"b")
    (waiter,) = wait_for(rig, first, second)

    (shown,) = seen(rig, ItemState.DELAYED)
    assert (shown.id, shown.at_ms, list(shown.after)) == (waiter, AWAITING_MS, [first, second])
    assert rig.stats().waiting == 1
    assert done(rig) == [first]
    rig.reopen()
    assert list(seen(rig, ItemState.DELAYED)[0].after) == [second]
    assert done(rig) == [second]

    assert ids_of(rig, ItemState.READY) == [waiter]
    assert rig.stats().waiting == 0
    assert rig.dump()["waits"] == rig.dump()["waited_for"] == []
    assert done(rig) == [waiter]


def test_a_chain_of_three(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    (second,) = wait_for(rig, first)
    (third,) = wait_for(rig, second)

    assert [done(rig)[0] for _ in range(3)] == [first, second, third]


def test_its_own_delay_begins_then(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    at_once, later = wait_for(rig, first, count=2, delays_ms=[0, 500])
    done(rig)

    assert ids_of(rig, ItemState.READY) == [at_once]
    (delayed,) = seen(rig, ItemState.DELAYED)
    assert (delayed.id, delayed.at_ms) == (later, rig.now_ms + 500)


def test_what_has_gone_counts_as_done_and_what_never_was_is_refused(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    done(rig)
    (waiter,) = wait_for(rig, first)
    assert ids_of(rig, ItemState.READY) == [waiter]
    with pytest.raises(NotFound, match="after: queue 'q' has never had an item ffff"):
        wait_for(rig, b"\xff" * 16)


@pytest.mark.parametrize("how", ["die", "cancel", "purge", "cancel while leased"])
def test_the_end_of_one_that_is_not_done_makes_it_a_dead_letter(rig: Rig, how: str) -> None:
    allow_attempts(rig, 1)
    first, second = rig.add(b"a", b"b")
    (waiter,) = wait_for(rig, first, second, batch="w")
    (after,) = wait_for(rig, waiter, batch="w")
    if how == "die":
        polled = rig.poll()
        rig.fail(polled.ids, polled.lease_id)
    elif how == "purge":
        purge(rig.engine, rig.queue, ItemState.READY, 1, rig.now_ms)
    else:
        if how == "cancel while leased":
            rig.poll()
        cancel(rig.engine, rig.queue, [first], rig.now_ms)
    rig.sweep_all()

    dead = {item.id: item for item in seen(rig, ItemState.DEAD)}
    assert dead.keys() - {first} == {waiter, after}
    assert dead[waiter].reason == "something that it waited for died or was cancelled"
    assert first.hex() in dead[waiter].last_error
    assert waiter.hex() in dead[after].last_error
    receipt = rig.queue.batches.receipt("w")
    assert (receipt.added, receipt.dead, receipt.complete) == (2, 2, True)
    assert rig.dump()["waits"] == rig.dump()["waited_for"] == []
    assert redrive(rig.engine, rig.queue, [waiter], rig.now_ms) == 1
    assert waiter in ids_of(rig, ItemState.READY)
    assert not rig.queue.batches.receipt("w").complete


def test_a_dead_letter_is_no_longer_to_wait_for(rig: Rig) -> None:
    allow_attempts(rig, 1)
    (first,) = rig.add(b"a")
    polled = rig.poll()
    rig.fail(polled.ids, polled.lease_id)
    (waiter,) = wait_for(rig, first)
    rig.sweep_all()

    assert ids_of(rig, ItemState.DEAD) == sorted([first, waiter])


def test_an_item_that_is_cancelled_or_purged_waits_no_more(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    cancelled, purged, _ = wait_for(rig, first, count=3)
    assert cancel(rig.engine, rig.queue, [cancelled], rig.now_ms) == [True]
    assert rig.stats().waiting == 2
    assert purge(rig.engine, rig.queue, ItemState.DELAYED, 1, rig.now_ms) == (1, True)
    assert purge(rig.engine, rig.queue, ItemState.DELAYED, 5, rig.now_ms) == (1, False)

    assert rig.stats().waiting == 0
    assert rig.dump()["waits"] == rig.dump()["waited_for"] == []
    assert purged not in ids_of(rig, ItemState.DELAYED)
    done(rig)


def test_items_wait_for_a_batch_whatever_became_of_its_items(rig: Rig) -> None:
    ids = list(rig.add_items(NewItems([b"a"] * 3, batch="b")).ids)
    waiters = wait_for(rig, after_batch="b", count=3)
    assert seen(rig, ItemState.DELAYED)[0].after_batch == "b"
    cancel(rig.engine, rig.queue, ids[:1], rig.now_ms)
    done(rig, 2)
    rig.sweep_all()

    assert ids_of(rig, ItemState.READY) == sorted(waiters)
    (late,) = wait_for(rig, after_batch="b")
    assert late in ids_of(rig, ItemState.READY)
    assert forget_batch(rig.engine, rig.queue, "b", rig.now_ms)


def test_batches_that_cannot_be_waited_for_are_refused(rig: Rig) -> None:
    with pytest.raises(NotFound, match="knows no batch 'b'"):
        wait_for(rig, after_batch="b")
    rig.add_items(NewItems([b"x"], keys=["k"]))
    rig.add_items(NewItems([b"x"], keys=["k"], batch="b"))
    with pytest.raises(FailedPrecondition, match=r"after_batch: 'b' .* has no items"):
        wait_for(rig, after_batch="b")
    with pytest.raises(InvalidArgument, match="after_batch: 'b' is the batch of the items"):
        wait_for(rig, after_batch="b", batch="b")


def test_many_wait_and_are_let_go_slice_by_slice(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    waiters = wait_for(rig, first, count=100)
    polled = rig.poll()
    rig.complete(polled.ids, polled.lease_id)
    for _ in range(3):
        rig.sweep_all(7)
        rig.reopen()

    assert ids_of(rig, ItemState.READY) == sorted(waiters)


def test_a_refused_write_changes_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = rig.add(b"a")
    (waiter,) = wait_for(rig, first)
    polled = rig.poll()
    rig.complete(polled.ids, polled.lease_id)
    before = rig.dump()
    with monkeypatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            rig.sweep_all()
    assert rig.dump() == before
    rig.now_ms += 1000
    rig.sweep_all()
    assert ids_of(rig, ItemState.READY) == [waiter]


def test_bounds_are_told_and_change_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = rig.add(b"a")
    wait_for(rig, first, count=2)
    before = rig.dump()
    for name, limit, message in (
        ("WAITERS_MAX", 3, "2 items wait for one and the same; 2 more would pass the limit of 3"),
        (
            "WAITING_MAX",
            3,
            "2 items of queue 'q' wait for others; 2 more would pass the limit of 3",
        ),
        ("AFTER_TOGETHER_MAX", 1, "2 items that wait for 1 each are too many for one call"),
    ):
        with monkeypatch.context() as low:
            low.setattr(f"queueber.engine.queue.after.{name}", limit)
            with pytest.raises(ResourceExhausted, match=message):
                wait_for(rig, first, count=2)
    assert rig.dump() == before


def test_an_add_that_is_a_duplicate_waits_for_nothing(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    items = NewItems([b"x"], keys=["k"], after=[first])
    (waiter,) = rig.add_items(items).ids
    assert list(rig.add_items(items).ids) == [waiter]
    assert rig.stats().waiting == 1
    done(rig)
    assert ids_of(rig, ItemState.READY) == [waiter]


@pytest.mark.parametrize("is_first_dead", [True, False])
def test_an_item_that_waits_may_expire(rig: Rig, is_first_dead: bool) -> None:
    (first,) = rig.add(b"a")
    own = ItemOptions(expires_ms=500)
    (waiter,) = rig.add_items(NewItems([b"x"], options=[own], after=[first])).ids
    if is_first_dead:
        cancel(rig.engine, rig.queue, [first], rig.now_ms)
    else:
        rig.now_ms += 500
    rig.sweep_all()

    assert ids_of(rig, ItemState.DEAD) == [waiter]
    assert rig.stats().waiting == 0
    assert rig.dump()["waits"] == rig.dump()["waited_for"] == rig.dump()["item_expiry"] == []
