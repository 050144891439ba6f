"""What decides about an item that waits is the first end after it began to wait, whenever the
sweeper reads of it."""

from collections.abc import Callable, Iterator

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.model import ItemState, NewItems
from tests.engine.making import allow_attempts
from tests.support.operations import cancel, peek, redrive
from tests.support.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    allow_attempts(made, 1)
    yield made
    rest = [item.id for state in ItemState for item in seen(made, state)]
    cancel(made.engine, made.queue, rest, made.now_ms)
    made.sweep_all()
    assert check_store(made.store) == []
    assert made.dump()["waits"] == made.dump()["waited_for"] == []
    made.close()


def seen(rig: Rig, state: ItemState) -> list:  # type: ignore[type-arg]
    return peek(rig.engine, rig.queue, state, b"", 1000, 1 << 30)[0]


def ids_of(rig: Rig, state: ItemState) -> list[bytes]:
    return sorted(item.id for item in seen(rig, state))


def wait_for(rig: Rig, *ids: bytes, count: int = 1, batch: str = "") -> list[bytes]:
    items = NewItems([b"later"] * count, priorities=[1] * count, after=ids, after_batch=batch)
    return list(rig.add_items(items).ids)


def die(rig: Rig, count: int = 1) -> list[bytes]:
    polled = rig.poll(count)
    rig.fail(polled.ids, polled.lease_id)
    return list(polled.ids)


def done(rig: Rig, count: int = 1) -> list[bytes]:
    polled = rig.poll(count)
    assert all(rig.complete(polled.ids, polled.lease_id))
    return list(polled.ids)


def redriven(rig: Rig, *ids: bytes) -> None:
    assert redrive(rig.engine, rig.queue, ids, rig.now_ms) == len(ids)


def checked(rig: Rig) -> None:
    assert check_store(rig.store) == []


@pytest.mark.parametrize("is_restarted", [True, False])
def test_who_begins_to_wait_after_a_redrive_waits_for_the_item_anew(
    rig: Rig, is_restarted: bool
) -> None:
    (first,) = rig.add(b"a")
    (before,) = wait_for(rig, first)
    die(rig)
    redriven(rig, first)
    (after,) = wait_for(rig, first)
    checked(rig)
    if is_restarted:
        rig.reopen()
    rig.sweep_all()

    assert ids_of(rig, ItemState.DEAD) == [before]
    assert ids_of(rig, ItemState.DELAYED) == [after]
    assert done(rig) == [first]
    rig.sweep_all()
    assert ids_of(rig, ItemState.READY) == [after]


def test_each_of_several_deaths_is_about_those_who_waited_then(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    waiters = []
    for _ in range(3):
        waiters += wait_for(rig, first)
        die(rig)
        redriven(rig, first)
    (last,) = wait_for(rig, first)
    checked(rig)
    rig.sweep_all()

    assert ids_of(rig, ItemState.DEAD) == waiters
    assert ids_of(rig, ItemState.DELAYED) == [last]


def test_an_item_that_died_has_died_though_it_is_done_later(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    (before,) = wait_for(rig, first)
    die(rig)
    redriven(rig, first)
    (after,) = wait_for(rig, first)
    assert done(rig) == [first]
    checked(rig)
    rig.sweep_all()

    assert ids_of(rig, ItemState.DEAD) == [before]
    assert ids_of(rig, ItemState.READY) == [after]


def test_one_of_many_that_died_together_is_redriven_and_done(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    before = [wait_for(rig, each)[0] for each in ids]
    die(rig, 3)
    redriven(rig, ids[1])
    (after,) = wait_for(rig, ids[1])
    assert done(rig) == [ids[1]]
    checked(rig)
    rig.sweep_all()

    assert ids_of(rig, ItemState.DEAD) == sorted([ids[0], ids[2], *before])
    assert ids_of(rig, ItemState.READY) == [after]


def test_who_waits_for_a_dead_letter_dies_though_it_is_redriven_before_the_sweep(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    die(rig)
    (before,) = wait_for(rig, first)
    redriven(rig, first)
    (after,) = wait_for(rig, first)
    checked(rig)
    rig.sweep_all()

    assert ids_of(rig, ItemState.DEAD) == [before]
    assert ids_of(rig, ItemState.DELAYED) == [after]


def again_by_an_add(rig: Rig, _: bytes) -> None:
    rig.add_items(NewItems([b"y"], batch="b"))


def again_by_a_redrive(rig: Rig, item: bytes) -> None:
    redriven(rig, item)


@pytest.mark.parametrize("again", [again_by_an_add, again_by_a_redrive])
def test_who_begins_to_wait_for_a_batch_that_has_live_items_again_waits_for_them(
    rig: Rig, again: Callable[[Rig, bytes], None]
) -> None:
    (item,) = rig.add_items(NewItems([b"x"], batch="b")).ids
    (before,) = wait_for(rig, batch="b")
    die(rig)
    again(rig, item)
    (after,) = wait_for(rig, batch="b")
    checked(rig)
    rig.sweep_all()

    assert before in ids_of(rig, ItemState.READY)
    assert ids_of(rig, ItemState.DELAYED) == [after]
    done(rig)
    rig.sweep_all()
    assert after in ids_of(rig, ItemState.READY)


@pytest.mark.parametrize("items_max", [1, 3, 1000])
def test_many_notes_and_many_who_came_later_are_read_slice_by_slice(
    rig: Rig, items_max: int
) -> None:
    ids = rig.add(*[b"a"] * 20)
    before = [waiter for each in ids for waiter in wait_for(rig, each, count=3)]
    die(rig, 20)
    redriven(rig, *ids)
    after = [waiter for each in ids for waiter in wait_for(rig, each, count=4)]
    checked(rig)
    rig.sweep_all(items_max)

    assert ids_of(rig, ItemState.DEAD) == before
    assert ids_of(rig, ItemState.DELAYED) == after
    done(rig, 20)
    rig.sweep_all(items_max)
    assert ids_of(rig, ItemState.READY) == after


def test_notes_of_many_ends_are_read_in_few_writes(rig: Rig) -> None:
    ids = rig.add(*[b"a"] * 50)
    waiters = [wait_for(rig, each)[0] for each in ids]
    both = wait_for(rig, *ids)
    for _ in ids:
        done(rig)
    assert len(rig.sweep_all()) < 5
    assert ids_of(rig, ItemState.READY) == sorted(waiters + both)
