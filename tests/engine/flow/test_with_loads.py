"""Workflows of batches to which loads add: committed, aborted, empty, and cut off."""

from collections.abc import Iterator

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.model import Callback, ItemState, LoadRef, NewItems, Rows, callback_receipt
from tests.engine.making import allow_attempts
from tests.support.callbacks import called_back, when_complete
from tests.support.load_rig import LoadRig
from tests.support.operations import abort_load, peek
from tests.support.rig import QUEUE

REPORT = Callback(QUEUE, b"report")


@pytest.fixture
def rig() -> Iterator[LoadRig]:
    made = LoadRig()
    yield made
    assert check_store(made.store) == []
    made.close()


def ask(rig: LoadRig) -> None:
    assert not when_complete(rig.engine, rig.queue, "b", REPORT, rig.now_ms).item_id


def receipts(rig: LoadRig) -> list[tuple[int, int, int]]:
    rig.sweep_all()
    found = [callback_receipt(item.attributes) for item in called_back(rig.engine, QUEUE)]
    return [(each.added, each.done, each.dead) for each in found]


def wait_for_batch(rig: LoadRig) -> bytes:
    (waiter,) = rig.add_items(NewItems([b"w"], priorities=[0], after_batch="b")).ids
    return waiter


def state_of(rig: LoadRig, item_id: bytes) -> ItemState:
    rig.sweep_all()
    (found,) = (
        state
        for state in ItemState
        for item in peek(rig.engine, rig.queue, state, b"", 1000, 1 << 30)[0]
        if item.id == item_id
    )
    return found


def done(rig: LoadRig, count: int) -> None:
    polled = rig.poll(count)
    assert rig.complete(polled.ids, polled.lease_id) == [True] * count


def test_the_rows_of_a_load_are_waited_for(rig: LoadRig) -> None:
    rig.add_items(NewItems([b"x"], batch="b"))
    load = rig.begin(batch="b")
    ask(rig)
    waiter = wait_for_batch(rig)
    done(rig, 1)
    assert (receipts(rig), state_of(rig, waiter)) == ([], ItemState.DELAYED)

    rig.commit(load, rig.stage(load, Rows([b"y", b"z"])))
    assert (receipts(rig), state_of(rig, waiter)) == ([], ItemState.DELAYED)
    done(rig, 2)
    assert (receipts(rig), state_of(rig, waiter)) == ([(3, 3, 0)], ItemState.READY)


@pytest.mark.parametrize("how", ["aborted", "its time is over"])
def test_an_aborted_load_completes_a_batch_whose_items_have_ended(rig: LoadRig, how: str) -> None:
    rig.add_items(NewItems([b"x"], batch="b"))
    load = rig.begin(batch="b", timeout_ms=60_000)
    rig.stage(load, Rows([b"y"]))
    ask(rig)
    waiter = wait_for_batch(rig)
    done(rig, 1)
    if how == "aborted":
        abort_load(rig.engine, rig.queue, LoadRef("load"), rig.now_ms)
    else:
        rig.now_ms += 60_000

    assert (receipts(rig), state_of(rig, waiter)) == ([(1, 1, 0)], ItemState.READY)


def test_a_batch_that_an_aborted_load_began_is_dead_for_those_who_wait(rig: LoadRig) -> None:
    rig.begin(batch="b")
    waiter = wait_for_batch(rig)
    abort_load(rig.engine, rig.queue, LoadRef("load"), rig.now_ms)

    assert state_of(rig, waiter) is ItemState.DEAD


def test_a_load_that_begins_anew_keeps_the_callback(rig: LoadRig) -> None:
    rig.begin(batch="b")
    ask(rig)
    waiter = wait_for_batch(rig)
    abort_load(rig.engine, rig.queue, LoadRef("load"), rig.now_ms)
    assert (receipts(rig), state_of(rig, waiter)) == ([], ItemState.DELAYED)

    rig.load(Rows([b"x"]), name="again", batch="b")
    done(rig, 1)
    assert (receipts(rig), state_of(rig, waiter)) == ([(1, 1, 0)], ItemState.READY)


def test_a_load_without_rows_completes_its_batch(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    ask(rig)
    waiter = wait_for_batch(rig)
    rig.commit(load)
    rig.reopen()

    assert (receipts(rig), state_of(rig, waiter)) == ([(0, 0, 0)], ItemState.READY)
    assert receipts(rig) == [(0, 0, 0)]


def test_a_load_without_rows_completes_no_batch_that_another_holds(rig: LoadRig) -> None:
    load, other = rig.begin(batch="b"), rig.begin("other", batch="b")
    ask(rig)
    waiter = wait_for_batch(rig)
    rig.commit(load)
    assert (receipts(rig), state_of(rig, waiter)) == ([], ItemState.DELAYED)

    rig.commit(other)
    assert (receipts(rig), state_of(rig, waiter)) == ([(0, 0, 0)], ItemState.READY)


def test_items_wait_for_rows_of_a_load(rig: LoadRig) -> None:
    allow_attempts(rig, 1)
    rig.load(Rows([b"x", b"y"]))
    first, second = rig.ready_ids()
    waiters = [
        rig.add_items(NewItems([b"w"], priorities=[0], after=[each])).ids[0]
        for each in (first, second)
    ]
    done(rig, 1)
    polled = rig.poll()
    rig.fail(polled.ids, polled.lease_id)

    assert [state_of(rig, each) for each in waiters] == [ItemState.READY, ItemState.DEAD]
