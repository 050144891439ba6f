"""Forget: keys, silent producers and ended batches go at their time, and nothing else."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, due_part, text_digest
from queueber.db.records.remembered import FORGET_KEY
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.find import id_of_key
from queueber.errors import NotFound
from queueber.limits import (
    BATCH_KEEP_MS,
    FORGOTTEN_TOGETHER_MAX,
    KEPT_KEYS_LOOK_MS,
    PRODUCER_KEEP_MS,
)
from queueber.model import NewItems, Producer, QueueSettings
from tests.engine.making import counters_aside, make_dead
from tests.support.operations import cancel, configure_queue, forget, receipt, redrive
from tests.support.rig import QUEUE, START_MS, Rig

MANY = 10_000
WINDOW_MS = 1000
REGISTRY = (Family.KEYS, Family.PRODUCERS, Family.BATCHES, Family.BATCH_NAMES, Family.FORGET)


@pytest.fixture(autouse=True)
def window(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(dedup_window_ms=WINDOW_MS), rig.now_ms)


def remembered(rig: Rig) -> dict[str, int]:
    return {family.family_name: len(rig.keys(family)) for family in REGISTRY if rig.keys(family)}


def run(rig: Rig, entries_max: int = MANY) -> tuple[int, int]:
    found = forget(rig.engine, rig.queue, rig.now_ms, entries_max)
    rig.assert_sound()
    return found


def add_and_complete(rig: Rig, items: NewItems) -> None:
    rig.add_items(items)
    polled = rig.poll(len(items.contents))
    rig.complete(polled.ids, polled.lease_id)


def test_forget_of_nothing_is_never_due_and_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    disk, memory = rig.dump(), rig.memory()

    assert run(rig) == (0, NEVER_MS)

    assert rig.dump() == disk
    assert rig.memory() == memory


# --- keys -----------------------------------------------------------------------------------------


def test_forget_of_a_key_waits_for_its_very_millisecond(rig: Rig) -> None:
    rig.add_items(NewItems([b"a"], keys=["k"]))
    rig.now_ms += WINDOW_MS - 1
    disk = rig.dump()
    assert run(rig) == (0, START_MS + WINDOW_MS)
    assert rig.dump() == disk
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += 1

    assert run(rig) == (1, NEVER_MS)

    assert remembered(rig) == {}


def test_the_key_of_an_item_that_is_there_is_kept_to_find_it_and_looked_at_again(rig: Rig) -> None:
    ids = rig.add_items(NewItems([b"a", b"b"], keys=["a", "b"])).ids
    other = rig.add_items(NewItems([b"c"], keys=["c"])).ids[0]
    cancel(rig.engine, rig.queue, [other], rig.now_ms)
    rig.now_ms += WINDOW_MS

    assert run(rig) == (3, rig.now_ms + KEPT_KEYS_LOOK_MS)

    # In one entry again, as they came; the third is gone with its item.
    assert remembered(rig) == {"keys": 2, "forget": 1}
    found = [id_of_key(rig.store, rig.queue, key, rig.now_ms) for key in ("a", "b", "c")]
    assert found == [*ids, b""]
    rig.assert_sound()
    rig.reopen()
    rig.now_ms += KEPT_KEYS_LOOK_MS
    assert run(rig) == (2, rig.now_ms + KEPT_KEYS_LOOK_MS)
    cancel(rig.engine, rig.queue, ids[:1], rig.now_ms)
    assert id_of_key(rig.store, rig.queue, "a", rig.now_ms) == b""
    assert id_of_key(rig.store, rig.queue, "b", rig.now_ms) == ids[1]
    cancel(rig.engine, rig.queue, ids[1:], rig.now_ms)
    rig.now_ms += KEPT_KEYS_LOOK_MS
    assert run(rig) == (2, NEVER_MS)
    assert remembered(rig) == {}


def test_an_add_with_a_kept_key_is_no_duplicate_and_is_found_by_it(rig: Rig) -> None:
    first = rig.add_items(NewItems([b"a"], keys=["k"])).ids[0]
    rig.now_ms += WINDOW_MS
    run(rig)

    added = rig.add_items(NewItems([b"b"], keys=["k"]))

    assert not any(added.duplicates)
    assert id_of_key(rig.store, rig.queue, "k", rig.now_ms) == added.ids[0] != first
    rig.now_ms += KEPT_KEYS_LOOK_MS
    run(rig)
    assert id_of_key(rig.store, rig.queue, "k", rig.now_ms) == added.ids[0]
    rig.assert_sound()


def test_a_key_that_is_added_anew_when_it_is_kept_has_one_entry_at_a_time(rig: Rig) -> None:
    """Both entries of the later time name it, if the window is as long as a key is kept."""
    settings = QueueSettings(dedup_window_ms=KEPT_KEYS_LOOK_MS)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
    rig.add_items(NewItems([b"a"], keys=["k"]))
    rig.now_ms += KEPT_KEYS_LOOK_MS
    run(rig)
    added = rig.add_items(NewItems([b"b"], keys=["k"]))
    rig.now_ms += KEPT_KEYS_LOOK_MS

    run(rig)

    assert remembered(rig) == {"keys": 1, "forget": 1}
    assert id_of_key(rig.store, rig.queue, "k", rig.now_ms) == added.ids[0]
    rig.assert_sound()


def test_both_windows_of_a_key_that_was_added_anew_may_be_looked_at_in_one_go(rig: Rig) -> None:
    for at_ms in (0, WINDOW_MS):
        rig.now_ms = START_MS + at_ms
        cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
        added = rig.add_items(NewItems([b"x"], keys=["k"]))
        assert not any(added.duplicates)
    rig.now_ms += WINDOW_MS

    run(rig)

    assert remembered(rig) == {"keys": 1, "forget": 1}
    rig.assert_sound()


def test_forget_of_many_keys_stops_at_its_limit_and_goes_on(rig: Rig) -> None:
    for n in range(25):
        rig.add_items(NewItems([b"x"], keys=[f"k{n}"]))
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += WINDOW_MS
    slices = []

    while (slice_ := run(rig, 10))[0]:
        slices.append(slice_[0])
        if remembered(rig):
            assert slice_[1] <= rig.now_ms, "there is more to do now"

    assert slices == [10, 10, 5]
    assert remembered(rig) == {}


def test_look_at_many_keys_of_items_that_are_there_stops_at_its_limit_and_goes_on(rig: Rig) -> None:
    """The kept ones come again an hour later, not in the slices that follow."""
    for n in range(25):
        rig.add_items(NewItems([b"x"], keys=[f"k{n}"]))
    rig.now_ms += WINDOW_MS

    for _ in range(2):
        later_ms = rig.now_ms + KEPT_KEYS_LOOK_MS
        slices = [run(rig, 10) for _ in range(3)]
        assert slices == [(10, rig.now_ms), (10, rig.now_ms), (5, later_ms)]
        assert remembered(rig) == {"keys": 25, "forget": 25}
        rig.assert_sound()
        rig.now_ms = later_ms


def test_keys_of_one_add_are_forgotten_in_groups(rig: Rig) -> None:
    count = 2 * FORGOTTEN_TOGETHER_MAX + 3
    keys = [f"k{n}" for n in range(count)]
    ids = rig.add_items(NewItems([b"x"] * count, keys=keys)).ids

    groups = [(0, 256), (256, 512), (512, 515)]
    assert rig.dump()["forget"] == [
        (
            rig.queue.prefix + due_part(rig.now_ms + WINDOW_MS, ids[stop - 1]),
            FORGET_KEY + b"".join(text_digest(key) for key in keys[start:stop]),
        )
        for start, stop in groups
    ]
    assert rig.queue.counters.forgets == 3
    rig.assert_sound()
    cancel(rig.engine, rig.queue, ids, rig.now_ms)
    rig.now_ms += WINDOW_MS

    slices = [run(rig, 1)[0] for _ in range(4)]

    assert slices == [256, 256, 3, 0], "a group goes as a whole"
    assert remembered(rig) == {}


def test_forget_of_several_groups_stops_once_there_were_enough_keys(rig: Rig) -> None:
    for _ in range(5):
        keys = [f"k{rig.stats().added_total + n}" for n in range(4)]
        rig.add_items(NewItems([b"x"] * 4, keys=keys))
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += WINDOW_MS

    assert run(rig, 6) == (8, rig.now_ms), "there is more to do now"
    assert remembered(rig) == {"keys": 12, "forget": 3}
    assert run(rig) == (12, NEVER_MS)
    assert remembered(rig) == {}


def test_forget_of_a_group_leaves_a_key_that_was_added_anew_meanwhile(rig: Rig) -> None:
    rig.add_items(NewItems([b"a", b"b", b"c"], keys=["a", "b", "c"]))
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += WINDOW_MS
    rig.add_items(NewItems([b"new"], keys=["b"]))

    assert run(rig) == (3, rig.now_ms + WINDOW_MS)

    assert rig.keys(Family.KEYS) == [rig.queue.prefix + text_digest("b")]
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += WINDOW_MS
    assert run(rig) == (1, NEVER_MS)
    assert remembered(rig) == {}


def test_forget_leaves_what_is_not_due_and_says_when_it_is(rig: Rig) -> None:
    rig.add_items(NewItems([b"a"], keys=["early"]))
    rig.now_ms += 400
    rig.add_items(NewItems([b"b"], keys=["late"]))
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms = START_MS + WINDOW_MS

    assert run(rig) == (1, rig.now_ms + 400)

    assert remembered(rig) == {"keys": 1, "forget": 1}


# --- producers ------------------------------------------------------------------------------------


def test_forget_of_a_silent_producer_leaves_nothing_of_it(rig: Rig) -> None:
    for sequence in (1, 2, 3):
        rig.add_items(NewItems([b"x"], producer=Producer("p", 1, sequence)))
    rig.now_ms += PRODUCER_KEEP_MS

    assert run(rig) == (1, NEVER_MS)

    assert remembered(rig) == {}


def test_forget_of_a_producer_that_has_been_active_puts_it_off(rig: Rig) -> None:
    rig.add_items(NewItems([b"x"], producer=Producer("p", 1, 1)))
    rig.now_ms += 5000
    rig.add_items(NewItems([b"x"], producer=Producer("p", 1, 2)))
    seen_at_ms = rig.now_ms
    assert len(rig.keys(Family.FORGET)) == 1, "activity costs no entry"
    rig.now_ms = START_MS + PRODUCER_KEEP_MS

    assert run(rig) == (1, seen_at_ms + PRODUCER_KEEP_MS)

    assert remembered(rig) == {"producers": 3, "forget": 1}
    assert rig.add_items(NewItems([b"x"], producer=Producer("p", 1, 2))).is_repeat
    rig.now_ms = seen_at_ms + PRODUCER_KEEP_MS
    assert run(rig) == (1, NEVER_MS)
    assert remembered(rig) == {}


# --- batches --------------------------------------------------------------------------------------


def test_forget_of_an_ended_batch_leaves_nothing_of_it(rig: Rig) -> None:
    add_and_complete(rig, NewItems([b"x", b"y"], batch="b"))
    rig.now_ms += BATCH_KEEP_MS - 1
    assert run(rig)[0] == 0
    rig.now_ms += 1

    assert run(rig) == (1, NEVER_MS)

    assert remembered(rig) == {}
    assert rig.stats().batches == 0
    with pytest.raises(NotFound):
        receipt(rig.engine, rig.queue, "b")


def test_forget_never_takes_a_batch_with_live_items(rig: Rig) -> None:
    rig.add_items(NewItems([b"x"], batch="b"))
    rig.now_ms += 10 * BATCH_KEEP_MS

    assert run(rig) == (0, NEVER_MS)

    assert remembered(rig) == {"batches": 1, "batch_names": 1}


def test_forget_of_a_batch_that_went_on_waits_for_its_next_end(rig: Rig) -> None:
    add_and_complete(rig, NewItems([b"x"], batch="b"))
    rig.add_items(NewItems([b"y"], batch="b"))
    rig.now_ms += BATCH_KEEP_MS

    assert run(rig) == (1, NEVER_MS)
    assert remembered(rig) == {"batches": 1, "batch_names": 1}

    polled = rig.poll()
    rig.complete(polled.ids, polled.lease_id)
    ended_at_ms = rig.now_ms
    rig.now_ms += BATCH_KEEP_MS - 1
    assert run(rig) == (0, ended_at_ms + BATCH_KEEP_MS)
    rig.now_ms += 1
    assert run(rig) == (1, NEVER_MS)
    assert remembered(rig) == {}


def test_forget_of_a_batch_that_went_on_and_ended_again_keeps_it_for_as_long(rig: Rig) -> None:
    add_and_complete(rig, NewItems([b"x"], batch="b"))
    rig.now_ms += 5000
    add_and_complete(rig, NewItems([b"y"], batch="b"))
    assert len(rig.keys(Family.FORGET)) == 1
    rig.now_ms = START_MS + BATCH_KEEP_MS

    assert run(rig) == (1, START_MS + 5000 + BATCH_KEEP_MS)

    assert receipt(rig.engine, rig.queue, "b").done == 2


def test_forget_of_a_batch_whose_dead_were_redriven_keeps_it(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"x"], batch="b"))
    redrive(rig.engine, rig.queue, dead, rig.now_ms)
    rig.now_ms += BATCH_KEEP_MS

    assert run(rig) == (1, NEVER_MS)

    assert receipt(rig.engine, rig.queue, "b").live == 1


def test_forget_of_a_batch_with_dead_letters_leaves_the_letters(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"x"], batch="b"))
    rig.now_ms += BATCH_KEEP_MS

    run(rig)

    assert rig.ids(Family.DEAD) == dead


# --- all together ---------------------------------------------------------------------------------


def test_forget_in_slices_ends_in_the_same_state_as_in_one(rig: Rig) -> None:
    twin = Rig(rig.queue.settings)
    try:
        for each in (rig, twin):
            for n in range(6):
                items = NewItems(
                    [b"x"], keys=[f"k{n}"], batch=f"b{n}", producer=Producer("p", n, 1)
                )
                add_and_complete(each, items)
                each.now_ms += 1
            each.now_ms += BATCH_KEEP_MS - 3
        while forget(rig.engine, rig.queue, rig.now_ms, 1)[0]:
            rig.assert_sound()

        forget(twin.engine, twin.queue, twin.now_ms, MANY)

        assert counters_aside(rig) == counters_aside(twin)
        assert rig.queue.counters.forgets == twin.queue.counters.forgets
    finally:
        twin.close()


def test_sweep_forgets_at_its_time(rig: Rig) -> None:
    rig.add_items(NewItems([b"a"], keys=["k"]))
    assert rig.engine.agenda.next_ms() == rig.now_ms + WINDOW_MS
    rig.reopen()
    assert rig.engine.agenda.next_ms() == rig.now_ms + WINDOW_MS
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += WINDOW_MS

    rig.sweep_all()

    assert remembered(rig) == {}
    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_nothing_is_forgotten_while_a_load_is_committed(rig: Rig) -> None:
    rig.add_items(NewItems([b"x"], keys=["k"]))
    rig.now_ms += rig.queue.settings.dedup_window_ms
    rig.queue.retention.is_on_hold = True

    tx = Transaction(rig.engine.kernel, rig.now_ms, rig.queue)
    done = rig.queue.retention.forget(tx, 10)
    tx.commit()

    assert (done.moved, done.look_again_ms) == (0, NEVER_MS)
    assert len(rig.keys(Family.KEYS)) == 1
