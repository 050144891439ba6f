"""Contents of new items in memory: what is kept, for how long, and that it never matters but for
time."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.engine.queue.ready_index import ReadyIndex, RecentContents
from queueber.ids import ItemId
from queueber.model import ItemState, NewItems, QueueSettings
from tests.engine.making import come_back_at_once
from tests.support.operations import add, cancel, create_queue, delete_queue, purge
from tests.support.rig import QUEUE, Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.close()


class User(ReadyIndex):
    """A queue that uses the cache."""

    def __init__(self) -> None:
        self.made_room = 0

    def contents_dropped(self) -> None:
        self.made_room += 1


ONE, TWO = User(), User()
A, B, C, X, ZERO = (ItemId(name) for name in (b"a", b"b", b"c", b"x", b"0"))


def kept(recent: RecentContents, *ids: bytes, user: ReadyIndex = ONE) -> list[bytes | None]:
    """What is there of them, which is still there afterwards."""
    item_ids = [ItemId(each) for each in ids]
    found = recent.take(user, item_ids)
    for item_id, contents in zip(item_ids, found, strict=True):
        if contents is not None:
            recent.keep(user, [item_id], [contents])
    return found


def limit(monkeypatch: pytest.MonkeyPatch, *, of_all: int, of_queue: int) -> None:
    monkeypatch.setattr("queueber.engine.queue.ready_index.RECENT_BYTES_MAX", of_all)
    monkeypatch.setattr("queueber.engine.queue.ready_index.RECENT_QUEUE_BYTES_MAX", of_queue)


def test_contents_are_taken_once() -> None:
    recent = RecentContents()
    recent.keep(ONE, [A, B], [b"A", b"B"])

    assert recent.take(ONE, [B, X]) == [b"B", None]
    assert recent.take(ONE, [B, A]) == [None, b"A"]
    assert recent.take(ONE, [A]) == [None]


def test_queues_do_not_see_each_other() -> None:
    recent = RecentContents()
    recent.keep(ONE, [A], [b"of 1"])
    recent.keep(TWO, [A], [b"of 2"])

    recent.forget(ONE)

    assert recent.take(ONE, [A]) == [None]
    assert recent.take(TWO, [A]) == [b"of 2"]


def test_oldest_stay_when_a_queue_has_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=10_000, of_queue=1500)
    recent = RecentContents()
    recent.keep(ONE, [A, B], [bytes(200), bytes(200)])
    recent.keep(ONE, [C], [bytes(200)])
    recent.keep(TWO, [C], [bytes(200)])

    assert kept(recent, A, B, C) == [bytes(200), bytes(200), None]
    assert kept(recent, C, user=TWO) == [bytes(200)]


def test_room_is_there_again_after_items_were_taken_or_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit(monkeypatch, of_all=1200, of_queue=1200)
    recent = RecentContents()
    for round_number in range(5):
        recent.keep(ONE, [A], [bytes(700)])
        recent.keep(TWO, [A], [bytes(700)])
        assert kept(recent, A) == [bytes(700)], round_number
        assert recent.take(TWO, [A]) == [None]
        if round_number % 2:
            recent.take(ONE, [A])
        else:
            recent.forget(ONE)


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
    come_back_at_once(rig)
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

    assert kept(rig.engine.queues._recent, *ids, user=rig.queue.ready) == [b"x"]
    assert len(rig.engine.queues._recent._users[rig.queue.ready].contents) == 1


def test_items_that_leave_otherwise_are_not_kept(rig: Rig) -> None:
    recent, user = rig.engine.queues._recent, rig.queue.ready
    cancelled, *others = rig.add(b"x", b"y", b"z")

    cancel(rig.engine, rig.queue, [cancelled], rig.now_ms)
    assert kept(recent, cancelled, *others, user=user) == [None, b"y", b"z"]

    purge(rig.engine, rig.queue, ItemState.READY, 10, rig.now_ms)
    assert kept(recent, *others, user=user) == [None, None]

    (last,) = rig.add(b"x")
    delete_queue(rig.engine, QUEUE)
    assert kept(recent, last, user=user) == [None]


def test_contents_in_memory_are_those_on_disk(rig: Rig) -> None:
    ids = rig.add(b"x" * 1000, b"")

    stored = rig.store.get_many(Family.ITEMS, [rig.queue.prefix + each for each in ids])

    assert None not in stored
    assert kept(rig.engine.queues._recent, *ids, user=rig.queue.ready) == [b"x" * 1000, b""]


def fill(recent: RecentContents, user: User, count: int) -> list[bool]:
    ids = [ItemId(b"%d" % number) for number in range(count)]
    return [recent.keep(user, [each], [bytes(650)]) for each in ids]


def test_queues_that_nobody_uses_make_room_idlest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=30_000, of_queue=20_000)
    recent = RecentContents()
    one, two, three = User(), User(), User()
    assert fill(recent, one, 10) == [True] * 10
    assert fill(recent, two, 10) == [True] * 10
    assert kept(recent, ZERO, user=one) == [bytes(650)], "1 is used after 2"

    kept_of_3 = fill(recent, three, 130)

    assert kept_of_3[:10] == [True] * 10
    assert (one.made_room, two.made_room) == (0, 1), (
        "20 of 3 found room then, which is all that a queue may have"
    )
    assert kept_of_3.count(True) == 20
    assert kept(recent, ZERO, user=two) == [None]
    assert kept(recent, ZERO, user=one) == kept(recent, ZERO, user=three) == [bytes(650)]


def test_queues_in_use_make_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=20_000, of_queue=15_000)
    recent = RecentContents()
    one, two = User(), User()
    fill(recent, one, 12)

    for number in range(300):
        recent.take(one, [X])
        recent.keep(two, [ItemId(b"%d" % number)], [bytes(650)])

    assert (one.made_room, two.made_room) == (0, 0)
    assert kept(recent, ZERO, b"11", user=one) == [bytes(650)] * 2


def test_window_of_a_queue_that_made_room_is_short_again_and_serves_all_in_order(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, of_all=1_000_000, of_queue=1_000_000)
    monkeypatch.setattr("queueber.engine.queue.ready_index.READY_WINDOW_ENTRIES", 8)
    ids = rig.add(*[b"%d" % number for number in range(2000)])
    (window,) = rig.queue.ready.windows.values()
    assert len(window.entries) == 2000
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    other = rig.engine.queues.get("other")

    for _ in range(110):
        add(rig.engine, other, NewItems([bytes(9000)]), rig.now_ms)

    assert len(window.entries) == 8
    polled = rig.poll(2000)
    assert (polled.ids, polled.contents) == (ids, [b"%d" % number for number in range(2000)])
    rig.assert_sound()
