"""Blocks of new items in memory: what is kept, for how long, and that it never matters but for
time."""

import pytest

from queueber.db.families import Family
from queueber.engine.queue.blocks import Blocks
from queueber.engine.queue.recent_blocks import RecentBlocks, User
from queueber.ids import ItemId
from queueber.limits import BLOCK_ITEMS_MAX
from queueber.model import ItemState, NewItems, QueueSettings
from tests.engine.making import come_back_at_once
from tests.support.operations import add, cancel, create_queue, delete_queue, purge
from tests.support.rig import QUEUE, Rig


class Queue:
    """A queue that uses the cache."""

    def __init__(self) -> None:
        self.made_room = 0

    def recent_dropped(self) -> None:
        self.made_room += 1


ONE, TWO = Queue(), Queue()
A, B, C, X, ZERO = (ItemId(name) for name in (b"a", b"b", b"c", b"x", b"0"))


def kept(recent: RecentBlocks, *blocks: bytes, user: User = ONE) -> list[bytes | None]:
    return [recent.get(user, ItemId(block)) for block in blocks]


def kept_of(rig: Rig, *blocks: bytes) -> list[bytes | None]:
    return kept(rig.engine.queues._recent, *blocks, user=rig.queue.blocks)


def stored(rig: Rig, *blocks: bytes) -> list[bytes | None]:
    return rig.store.get_many(Family.ITEMS, [rig.queue.prefix + block for block in blocks])


def limit(monkeypatch: pytest.MonkeyPatch, *, of_all: int, of_queue: int) -> None:
    monkeypatch.setattr("queueber.engine.queue.recent_blocks.RECENT_BYTES_MAX", of_all)
    monkeypatch.setattr("queueber.engine.queue.recent_blocks.RECENT_QUEUE_BYTES_MAX", of_queue)


def read_nothing(rig: Rig) -> None:
    """From here on, who reads contents from the store fails."""
    rig.store.get_many = None  # type: ignore[method-assign,assignment]


# --- the cache ------------------------------------------------------------------------------------


def test_block_stays_until_the_last_of_its_ready_items_has_left() -> None:
    recent = RecentBlocks()
    recent.keep(ONE, [(A, b"A", 3), (B, b"B", 1)])

    recent.left(ONE, [(A, 2), (X, 9)])
    assert kept(recent, A, B, X) == [b"A", b"B", None]

    recent.left(ONE, [(B, 1), (A, 1)])
    assert kept(recent, A, B) == [None, None]
    assert recent.keep(ONE, [(A, b"A again", 1)])
    assert kept(recent, A) == [b"A again"]


def test_block_of_which_a_run_left_but_for_its_rest_stays() -> None:
    """The run is counted as gone, and its rest as back, in one step."""
    recent = RecentBlocks()
    recent.keep(ONE, [(A, b"A", 3)])

    recent.left(ONE, [(A, 3), (A, -1)])
    assert kept(recent, A) == [b"A"]

    recent.left(ONE, [(A, 1)])
    assert kept(recent, A) == [None]


def test_queues_do_not_see_each_other() -> None:
    recent = RecentBlocks()
    recent.keep(ONE, [(A, b"of 1", 1)])
    recent.keep(TWO, [(A, b"of 2", 1)])

    recent.forget(ONE)
    recent.left(ONE, [(A, 1)])

    assert kept(recent, A) == [None]
    assert kept(recent, A, user=TWO) == [b"of 2"]


def test_oldest_stay_when_a_queue_has_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=10_000, of_queue=2000)
    recent = RecentBlocks()
    assert recent.keep(ONE, [(A, bytes(200), 1), (B, bytes(200), 1)])
    assert not recent.keep(ONE, [(C, bytes(200), 1)])
    assert recent.keep(TWO, [(C, bytes(200), 1)])

    assert kept(recent, A, B, C) == [bytes(200), bytes(200), None]
    assert kept(recent, C, user=TWO) == [bytes(200)]


def test_blocks_of_one_call_are_kept_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=10_000, of_queue=2000)
    recent = RecentBlocks()

    assert not recent.keep(ONE, [(A, bytes(900), 1), (B, bytes(900), 1)])

    assert kept(recent, A, B) == [None, None]


def test_room_is_there_again_after_items_left_or_were_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit(monkeypatch, of_all=1500, of_queue=1500)
    recent = RecentBlocks()
    for round_number in range(5):
        assert recent.keep(ONE, [(A, bytes(700), 2)])
        assert not recent.keep(TWO, [(A, bytes(700), 2)])
        assert kept(recent, A) == [bytes(700)], round_number
        assert kept(recent, A, user=TWO) == [None]
        if round_number % 2:
            recent.left(ONE, [(A, 2)])
        else:
            recent.forget(ONE)


def fill(recent: RecentBlocks, user: Queue, count: int) -> list[bool]:
    blocks = [ItemId(b"%d" % number) for number in range(count)]
    return [recent.keep(user, [(block, bytes(400), 1)]) for block in blocks]


def test_queues_that_nobody_uses_make_room_idlest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=30_000, of_queue=20_000)
    recent = RecentBlocks()
    one, two, three = Queue(), Queue(), Queue()
    assert fill(recent, one, 10) == [True] * 10
    assert fill(recent, two, 10) == [True] * 10
    assert kept(recent, ZERO, user=one) == [bytes(400)], "1 is used after 2"

    kept_of_3 = fill(recent, three, 130)

    assert kept_of_3[:10] == [True] * 10
    assert (one.made_room, two.made_room) == (0, 1), (
        "20 of 3 found room then, which is all that a queue may have"
    )
    assert kept_of_3.count(True) == 20
    assert kept(recent, ZERO, user=two) == [None]
    assert kept(recent, ZERO, user=one) == kept(recent, ZERO, user=three) == [bytes(400)]


def test_queues_in_use_make_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=20_000, of_queue=15_000)
    recent = RecentBlocks()
    one, two = Queue(), Queue()
    fill(recent, one, 12)

    for number in range(300):
        recent.get(one, X)
        recent.keep(two, [(ItemId(b"%d" % number), bytes(400), 1)])

    assert (one.made_room, two.made_room) == (0, 0)
    assert kept(recent, ZERO, b"11", user=one) == [bytes(400)] * 2


# --- of a queue -----------------------------------------------------------------------------------


def test_poll_of_new_items_reads_no_contents(rig: Rig) -> None:
    rig.add(b"x", b"y", b"z")
    read_nothing(rig)

    assert rig.poll(1).contents == [b"x"]
    assert rig.poll(2).contents == [b"y", b"z"]


def test_poll_reads_what_is_not_kept(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, of_all=900, of_queue=900)
    rig.add(b"x", b"y")
    (other,) = rig.add(b"z")
    assert kept_of(rig, other) == [None]

    assert rig.poll(3).contents == [b"x", b"y", b"z"]


def test_poll_that_begins_a_block_keeps_it_for_the_next(rig: Rig) -> None:
    """As after a restart: the first poll reads the block, and those that follow read nothing."""
    ids = rig.add(b"w", b"x", b"y", b"z")
    rig.reopen()
    assert kept_of(rig, ids[-1]) == [None]

    assert rig.poll(1).contents == [b"w"]
    assert kept_of(rig, ids[-1]) == stored(rig, ids[-1])

    read_nothing(rig)
    assert rig.poll(2).contents == [b"x", b"y"]
    assert rig.poll(1).contents == [b"z"]
    assert kept_of(rig, ids[-1]) == [None], "all that was ready has left"


def test_poll_that_takes_a_block_whole_keeps_nothing(rig: Rig) -> None:
    ids = rig.add(b"x", b"y")
    rig.reopen()

    assert rig.poll(2).contents == [b"x", b"y"]

    assert kept_of(rig, ids[-1]) == [None]


def test_item_that_comes_back_has_its_contents(rig: Rig) -> None:
    come_back_at_once(rig)
    rig.add(b"x")
    rig.poll(1, lease_ms=10)
    rig.now_ms += 11
    rig.sweep_all()

    assert rig.poll(1).contents == [b"x"]


def test_items_of_a_kept_block_that_come_back_have_their_contents(rig: Rig) -> None:
    ids = rig.add(b"w", b"x", b"y", b"z")
    for _ in range(5):
        polled = rig.poll(3)
        rig.now_ms += 1
        assert all(rig.release(polled.ids, polled.lease_id))

    polled = rig.poll(4)

    assert sorted(zip(polled.ids, polled.contents, strict=True)) == list(
        zip(ids, [b"w", b"x", b"y", b"z"], strict=True)
    )
    assert kept_of(rig, ids[-1]) == [None]
    rig.assert_sound()


def test_refused_add_keeps_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = rig.add(b"x")
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "write", lambda batch: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rig.add(b"y")

    assert kept_of(rig, *ids) == stored(rig, *ids)
    assert len(rig.engine.queues._recent._users[rig.queue.blocks].blocks) == 1


def test_refused_poll_keeps_what_was_kept(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = rig.add(b"x", b"y")
    with monkeypatch.context() as patch:
        patch.setattr(rig.store, "write", lambda batch: 1 / 0)
        for count in (1, 2):
            with pytest.raises(ZeroDivisionError):
                rig.poll(count)

    assert kept_of(rig, ids[-1]) == stored(rig, ids[-1])
    read_nothing(rig)
    assert rig.poll(2).contents == [b"x", b"y"]


def test_delayed_items_alone_are_not_kept(rig: Rig) -> None:
    ids = rig.add(b"x", b"y", delays_ms=[50, 50])
    (mixed, _) = rig.add(b"x", b"y", delays_ms=[0, 50])

    assert kept_of(rig, ids[-1]) == [None]
    assert rig.poll(1).ids == [mixed]
    assert len(rig.engine.queues._recent._users) == 0, "none that is ready is left"


def test_blocks_whose_items_leave_otherwise_are_not_kept(rig: Rig) -> None:
    recent, user = rig.engine.queues._recent, rig.queue.blocks
    ids = rig.add(b"x", b"y", b"z")

    cancel(rig.engine, rig.queue, [ids[1]], rig.now_ms)
    assert kept_of(rig, ids[2]) != [None]
    cancel(rig.engine, rig.queue, [ids[2], ids[0]], rig.now_ms)
    assert kept_of(rig, ids[2]) == [None]

    ids = rig.add(b"x", b"y", b"z")
    purge(rig.engine, rig.queue, ItemState.READY, 2, rig.now_ms)
    assert kept_of(rig, ids[2]) == [None]

    (last,) = rig.add(b"x")
    delete_queue(rig.engine, QUEUE)
    assert kept(recent, last, user=user) == [None]


def test_blocks_in_memory_are_those_on_disk(rig: Rig) -> None:
    ids = rig.add(*[b"x" * 100] * (BLOCK_ITEMS_MAX + 3))

    blocks = [ids[BLOCK_ITEMS_MAX - 1], ids[-1]]

    assert rig.keys(Family.ITEMS) == [rig.queue.prefix + block for block in blocks]
    assert None not in kept_of(rig, *blocks)
    assert kept_of(rig, *blocks) == stored(rig, *blocks)


def test_block_that_was_rewritten_is_read_from_memory_as_before(rig: Rig) -> None:
    """What is kept is right for every item that is left, though the store has less by now."""
    contents = [b"%d" % n * 100 for n in range(10)]
    ids = rig.add(*contents)
    (before,) = kept_of(rig, ids[-1])
    polled = rig.poll(9)
    rig.remove(polled.ids, polled.lease_id)
    (after,) = stored(rig, ids[-1])
    assert before is not None
    assert after is not None
    assert len(after) < len(before)

    assert kept_of(rig, ids[-1]) == [before]
    read_nothing(rig)
    assert rig.poll(1).contents == contents[9:]


def test_window_of_a_queue_that_made_room_is_short_again_and_serves_all_in_order(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, of_all=1_000_000, of_queue=1_000_000)
    monkeypatch.setattr("queueber.engine.queue.ready_index.READY_WINDOW_ENTRIES", 8)
    contents = [b"%d" % number for number in range(200)]
    ids = list(rig.add_items(NewItems(contents[:100], priorities=[5, 5] * 50)).ids)
    for each in contents[100:]:
        ids += rig.add(each)
    (window,) = rig.queue.ready.windows.values()
    assert len(window.entries) == 101
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    other = rig.engine.queues.get("other")

    for _ in range(110):
        add(rig.engine, other, NewItems([bytes(9000)]), rig.now_ms)

    assert len(window.entries) == 8
    polled = rig.poll(2000)
    assert (polled.ids, polled.contents) == (ids, contents)
    rig.assert_sound()


def test_blocks_of_a_queue_are_told_when_the_cache_dropped_them(rig: Rig) -> None:
    told: list[str] = []
    blocks = Blocks(rig.store, rig.queue.prefix, RecentBlocks())
    blocks.recent_dropped()

    blocks.when_recent_dropped = lambda: told.append("dropped")
    blocks.recent_dropped()

    assert told == ["dropped"]
