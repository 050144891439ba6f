"""A batch that would come to wait for itself is refused, through whatever items and batches."""

from collections.abc import Iterator

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.errors import FailedPrecondition
from queueber.model import NewItems
from tests.support.operations import cancel
from tests.support.rig import Rig

CIRCLE = r"after: batch 'a' of queue 'q' would wait for itself: item \w+ waits for it"


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    assert check_store(made.store) == []
    made.close()


def add(
    rig: Rig, batch: str = "", *, after: tuple[bytes, ...] = (), after_batch: str = ""
) -> bytes:
    items = NewItems([b"x"], batch=batch, after=after, after_batch=after_batch)
    (item_id,) = rig.add_items(items).ids
    return item_id


def refused(rig: Rig, *, after: tuple[bytes, ...] = (), after_batch: str = "") -> None:
    before = rig.dump()
    with pytest.raises(FailedPrecondition, match=CIRCLE):
        add(rig, "a", after=after, after_batch=after_batch)
    assert rig.dump() == before


def test_two_batches_that_would_wait_for_each_other(rig: Rig) -> None:
    add(rig, "a")
    add(rig, "b", after_batch="a")

    refused(rig, after_batch="b")
    add(rig, "c", after_batch="b")
    refused(rig, after_batch="c")


def test_an_item_of_the_batch_after_one_that_waits_for_the_batch(rig: Rig) -> None:
    add(rig, "a")
    waiter = add(rig, after_batch="a")
    second = add(rig, after=(waiter,))

    refused(rig, after=(waiter,))
    refused(rig, after=(add(rig), second))


def test_through_items_and_batches(rig: Rig) -> None:
    add(rig, "a")
    waiter = add(rig, "b", after_batch="a")
    add(rig, "c", after=(waiter,))

    refused(rig, after_batch="c")
    free = add(rig, "b")
    assert add(rig, "a", after=(free,))


def test_what_is_no_circle_is_added(rig: Rig) -> None:
    first = add(rig, "a")
    second = add(rig, "a", after=(first,))
    add(rig, "a", after=(first, second))
    add(rig, "b", after=(second,))
    waiter = add(rig, "d", after_batch="a")
    add(rig, "e", after_batch="b")
    cancel(rig.engine, rig.queue, [waiter], rig.now_ms)
    rig.sweep_all()

    assert add(rig, "a", after_batch="b")


def test_a_circle_through_too_many_items_is_not_seen(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.queue.after.CIRCLE_LOOKED_AT_MAX", 2)
    add(rig, "a")
    for _ in range(2):
        add(rig, after_batch="a")
    last = add(rig, after_batch="a")

    assert add(rig, "a", after=(last,))
