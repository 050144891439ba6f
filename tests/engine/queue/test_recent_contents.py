"""Contents of new items in memory: what is kept, for how long, and that it never matters but for
time."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.engine.queue.add import add
from queueber.engine.queue.cancel import cancel
from queueber.engine.queue.purge import purge
from queueber.engine.queue.queues import create_queue, delete_queue
from queueber.engine.queue.recent_contents import FreshContents
from queueber.model import ItemState, NewItems, QueueSettings
from tests.support.rig import QUEUE, Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.close()


def kept(fresh: FreshContents, *ids: bytes, queue_id: int = 1) -> list[bytes | None]:
    """What is there of them, which is still there afterwards."""
    found = fresh.take(queue_id, ids)
    for item_id, contents in zip(ids, found, strict=True):
        if contents is not None:
            fresh.keep(queue_id, [item_id], [contents])
    return found


def limit(monkeypatch: pytest.MonkeyPatch, *, of_all: int, of_queue: int) -> None:
    monkeypatch.setattr("queueber.engine.queue.recent_contents.FRESH_BYTES_MAX", of_all)
    monkeypatch.setattr("queueber.engine.queue.recent_contents.FRESH_QUEUE_BYTES_MAX", of_queue)


def test_contents_are_taken_once() -> None:
    fresh = FreshContents()
    fresh.keep(1, [b"a", b"b"], [b"A", b"B"])

    assert fresh.take(1, [b"b", b"x"]) == [b"B", None]
    assert fresh.take(1, [b"b", b"a"]) == [None, b"A"]
    assert fresh.take(1, [b"a"]) == [None]


def test_queues_do_not_see_each_other() -> None:
    fresh = FreshContents()
    fresh.keep(1, [b"a"], [b"of 1"])
    fresh.keep(2, [b"a"], [b"of 2"])

    fresh.forget(1)

    assert fresh.take(1, [b"a"]) == [None]
    assert fresh.take(2, [b"a"]) == [b"of 2"]


def test_oldest_stay_when_a_queue_has_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=10_000, of_queue=1500)
    fresh = FreshContents()
    fresh.keep(1, [b"a", b"b"], [bytes(200), bytes(200)])
    fresh.keep(1, [b"c"], [bytes(200)])
    fresh.keep(2, [b"c"], [bytes(200)])

    assert kept(fresh, b"a", b"b", b"c") == [bytes(200), bytes(200), None]
    assert kept(fresh, b"c", queue_id=2) == [bytes(200)]


def test_room_is_there_again_after_items_were_taken_or_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit(monkeypatch, of_all=1200, of_queue=1200)
    fresh = FreshContents()
    for round_number in range(5):
        fresh.keep(1, [b"a"], [bytes(700)])
        fresh.keep(2, [b"a"], [bytes(700)])
        assert kept(fresh, b"a") == [bytes(700)], round_number
        assert fresh.take(2, [b"a"]) == [None]
        if round_number % 2:
            fresh.take(1, [b"a"])
        else:
            fresh.forget(1)


def test_poll_of_new_items_reads_no_contents(rig: Rig) -> None:
    rig.add(b"x", b"y")
    rig.store.get_many = None  # type: ignore[method-assign,assignment]

    assert rig.poll(2).contents == [b"x", b"y"]


def test_poll_reads_what_is_not_kept(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=900, of_queue=900)
    rig.add(b"x", b"y")
    rig.add(b"z")

    assert rig.poll(3).contents == [b"x", b"y", b"z"]


def test_item_that_comes_back_has_its_contents(rig: Rig) -> None:
    rig.add(b"x")
    rig.poll(1, lease_ms=10)
    rig.now_ms += 11
    rig.sweep_all()

    assert rig.poll(1).contents == [b"x"]


def test_refused_add_keeps_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = rig.add(b"x")
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "write", lambda batch: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rig.add(b"y")

    assert kept(rig.engine.fresh, *ids, queue_id=rig.queue.queue_id) == [b"x"]
    assert len(rig.engine.fresh._queues[rig.queue.queue_id].contents) == 1


def test_items_that_leave_otherwise_are_not_kept(rig: Rig) -> None:
    fresh, queue_id = rig.engine.fresh, rig.queue.queue_id
    cancelled, *others = rig.add(b"x", b"y", b"z")

    cancel(rig.engine, rig.queue, [cancelled], rig.now_ms)
    assert kept(fresh, cancelled, *others, queue_id=queue_id) == [None, b"y", b"z"]

    purge(rig.engine, rig.queue, ItemState.READY, 10, rig.now_ms)
    assert kept(fresh, *others, queue_id=queue_id) == [None, None]

    (last,) = rig.add(b"x")
    delete_queue(rig.engine, QUEUE)
    assert kept(fresh, last, queue_id=queue_id) == [None]


def test_contents_in_memory_are_those_on_disk(rig: Rig) -> None:
    ids = rig.add(b"x" * 1000, b"")

    stored = rig.store.get_many(Family.ITEMS, [rig.queue.prefix + each for each in ids])

    assert None not in stored
    assert kept(rig.engine.fresh, *ids, queue_id=rig.queue.queue_id) == [b"x" * 1000, b""]


def fill(fresh: FreshContents, queue_id: int, count: int, dropped: list[int]) -> list[bool]:
    ids = [b"%d" % number for number in range(count)]
    return [fresh.keep(queue_id, [each], [bytes(650)], dropped.append) for each in ids]


def test_queues_that_nobody_uses_make_room_idlest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=30_000, of_queue=20_000)
    fresh, dropped = FreshContents(), list[int]()
    assert fill(fresh, 1, 10, dropped) == [True] * 10
    assert fill(fresh, 2, 10, dropped) == [True] * 10
    assert kept(fresh, b"0") == [bytes(650)], "1 is used after 2"

    kept_of_3 = fill(fresh, 3, 130, dropped)

    assert kept_of_3[:10] == [True] * 10
    assert dropped == [2], "20 of 3 found room then, which is all that a queue may have"
    assert kept_of_3.count(True) == 20
    assert kept(fresh, b"0", queue_id=2) == [None]
    assert kept(fresh, b"0") == kept(fresh, b"0", queue_id=3) == [bytes(650)]


def test_queues_in_use_make_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=20_000, of_queue=15_000)
    fresh, dropped = FreshContents(), list[int]()
    fill(fresh, 1, 12, dropped)

    for number in range(300):
        fresh.take(1, [b"not there"])
        fresh.keep(2, [b"%d" % number], [bytes(650)], dropped.append)

    assert dropped == []
    assert kept(fresh, b"0", b"11") == [bytes(650)] * 2


def test_window_of_a_queue_that_made_room_is_short_again_and_serves_all_in_order(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, of_all=1_000_000, of_queue=1_000_000)
    monkeypatch.setattr("queueber.engine.queue.ready_window.READY_WINDOW_ENTRIES", 8)
    ids = rig.add(*[b"%d" % number for number in range(2000)])
    (window,) = rig.queue.windows.values()
    assert len(window.entries) == 2000
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    other = rig.engine.queue("other")

    for _ in range(110):
        add(rig.engine, other, NewItems([bytes(9000)]), rig.now_ms)

    assert len(window.entries) == 8
    polled = rig.poll(2000)
    assert (polled.ids, polled.contents) == (ids, [b"%d" % number for number in range(2000)])
    rig.assert_sound()
