"""Promote: delayed items become ready at their time, in the order of their times."""

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, due_part, level_part
from queueber.db.records.runs import encode_run
from queueber.model import NewItems, QueueSettings
from tests.engine.making import run_of
from tests.support.operations import add, create_queue, promote
from tests.support.rig import Rig

MANY = 10_000


def test_promote_before_anything_is_due_changes_nothing(rig: Rig) -> None:
    rig.add(b"a", delays_ms=[100])
    rig.now_ms += 99
    disk, memory = rig.dump(), rig.memory()

    assert promote(rig.engine, rig.queue, rig.now_ms, MANY) == (0, rig.now_ms + 1)

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_promote_without_delayed_items_is_never_due(rig: Rig) -> None:
    rig.add(b"a")

    assert promote(rig.engine, rig.queue, rig.now_ms, MANY) == (0, NEVER_MS)


def test_promote_at_the_very_millisecond_moves_the_entry_with_its_time(rig: Rig) -> None:
    (item,) = rig.add(b"abc", delays_ms=[100])
    visible_at_ms = rig.now_ms + 100

    assert promote(rig.engine, rig.queue, visible_at_ms, MANY) == (1, NEVER_MS)

    key = rig.queue.prefix + level_part(4) + due_part(visible_at_ms, item)
    assert rig.dump()["visibility_index"] == [(key, encode_run(run_of([item], 3)))]
    assert rig.keys(Family.DELAYED) == []
    rig.assert_sound()


def test_promote_late_keeps_the_order_in_which_items_became_visible(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c", delays_ms=[300, 100, 200])
    rig.now_ms += 1000
    (plain,) = rig.add(b"plain")

    promote(rig.engine, rig.queue, rig.now_ms, MANY)

    rig.assert_sound()
    assert rig.poll(4).ids == [ids[1], ids[2], ids[0], plain]


def test_promote_leaves_what_is_not_due_and_says_when_it_is(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", delays_ms=[10, 70])
    rig.now_ms += 10

    assert promote(rig.engine, rig.queue, rig.now_ms, MANY) == (1, rig.now_ms + 60)

    assert rig.ready_ids() == ids[:1]
    assert rig.stats().delayed == 1
    rig.assert_sound()


def test_promote_of_many_stops_at_runs_max_and_goes_on(rig: Rig) -> None:
    ids = [item_id for _ in range(25) for item_id in rig.add(b"x", b"y", delays_ms=[50, 50])]
    rig.now_ms += 50
    moved = []

    while (slice_ := promote(rig.engine, rig.queue, rig.now_ms, 10))[0]:
        moved.append(slice_[0])
        rig.assert_sound()
        if rig.stats().delayed:
            assert slice_[1] <= rig.now_ms, "there is more to do now"

    assert moved == [20, 20, 10]
    assert rig.ready_ids() == ids


def test_promote_of_exactly_runs_max_ends_with_an_empty_slice(rig: Rig) -> None:
    for _ in range(10):
        rig.add(b"x", b"y", delays_ms=[50, 50])
    rig.now_ms += 50

    assert promote(rig.engine, rig.queue, rig.now_ms, 10)[0] == 20
    assert promote(rig.engine, rig.queue, rig.now_ms, 10) == (0, NEVER_MS)
    rig.assert_sound()


def test_promote_after_the_clock_stepped_back_waits_for_its_time(rig: Rig) -> None:
    rig.add(b"a", delays_ms=[100])
    due_ms = rig.now_ms + 100
    rig.now_ms -= 5000

    assert promote(rig.engine, rig.queue, rig.now_ms, MANY) == (0, due_ms)

    (early,) = rig.add(b"b", delays_ms=[100])
    rig.now_ms += 100
    assert promote(rig.engine, rig.queue, rig.now_ms, MANY) == (1, due_ms)
    assert rig.ready_ids() == [early]
    rig.assert_sound()


def test_promote_of_one_queue_leaves_the_delayed_items_of_another(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    add(rig.engine, rig.engine.queues.get("other"), NewItems([b"theirs"], [10]), rig.now_ms)
    (ours,) = rig.add(b"ours", delays_ms=[10])
    rig.now_ms += 10

    assert promote(rig.engine, rig.queue, rig.now_ms, MANY) == (1, NEVER_MS)

    assert rig.ready_ids() == [ours]
    assert len(rig.keys(Family.DELAYED)) == 1
    rig.assert_sound()
