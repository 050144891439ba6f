"""Redrive: dead letters are as if just added, in their batch too."""

import pytest

from queueber.db.families import Family
from queueber.db.records.runs import MarkFields
from queueber.limits import BATCH_KEEP_MS
from queueber.model import NewItems
from tests.engine.making import allow_attempts, make_dead, whereabouts
from tests.support.operations import receipt, redrive, redrive_first
from tests.support.rig import Rig


def test_redrive_makes_a_dead_letter_ready_with_no_trace_of_its_failures(rig: Rig) -> None:
    (item_id,) = make_dead(
        rig, NewItems([b"abc"], priorities=[8], keys=["k"], attributes=[{"a": "b"}])
    )
    rig.now_ms += 10

    assert redrive(rig.engine, rig.queue, [item_id], rig.now_ms) == 1

    family, mark = whereabouts(rig, item_id)
    assert family is Family.VISIBILITY_INDEX
    assert (mark.attempts, mark.group_max, mark.priority, mark.has_details) == (0, 0, 8, True)
    assert rig.keys(Family.DEAD) == rig.keys(Family.ATTEMPTS) == []
    assert (rig.stats().dead, rig.stats().redriven_total) == (0, 1)
    polled = rig.poll()
    assert (polled.contents, polled.details.keys, polled.details.attempts) == ([b"abc"], ["k"], ())
    rig.assert_sound()


def test_redrive_of_a_former_suspect_lets_it_go_in_any_company(rig: Rig) -> None:
    rig.add(b"a", b"b")
    rig.poll(2, lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()
    dead: list[bytes] = []
    for polled in rig.poll_many([1, 1]):
        rig.release(polled.ids, polled.lease_id)
        dead += polled.ids
    for _ in range(20):
        for polled in rig.poll_many([1, 1]):
            rig.fail(polled.ids, polled.lease_id, delay_ms=0)
    assert rig.stats().dead == 2
    rig.assert_sound()

    assert redrive(rig.engine, rig.queue, dead, rig.now_ms) == 2

    assert [whereabouts(rig, item_id)[1] for item_id in dead] == [MarkFields()] * 2
    assert list(rig.poll(10).ids) == sorted(dead)
    rig.assert_sound()


def test_redrive_counts_what_it_revived_and_passes_over_the_rest(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"a", b"b"]))
    (ready,) = rig.add(b"ready")

    count = redrive(rig.engine, rig.queue, [ready, dead[1], bytes(16), dead[1]], rig.now_ms)

    assert count == 1
    assert rig.ids(Family.DEAD) == dead[:1]
    rig.assert_sound()


def test_redrive_of_nothing_that_is_dead_changes_nothing(rig: Rig) -> None:
    (ready,) = rig.add(b"ready")
    make_dead(rig, NewItems([b"a"], priorities=[9]))
    disk, memory = rig.dump(), rig.memory()

    assert redrive(rig.engine, rig.queue, [ready, bytes(16)], rig.now_ms) == 0

    assert rig.dump() == disk
    assert rig.memory() == memory


# --- batches --------------------------------------------------------------------------------------


def test_redrive_makes_an_item_live_in_its_batch_again(rig: Rig) -> None:
    fresh = rig.add_items(NewItems([b"x"], batch="b")).ids
    (item_id,) = make_dead(rig, NewItems([b"a"], priorities=[9], batch="b"))
    rig.queue.batches.finished.clear()

    redrive(rig.engine, rig.queue, [item_id], rig.now_ms)

    found = receipt(rig.engine, rig.queue, "b")
    assert (found.added, found.dead, found.live, found.complete) == (2, 0, 2, False)
    assert found.dead_digest == bytes(16)
    for polled in rig.poll_many([1, 1]):
        rig.complete(polled.ids, polled.lease_id)
    found = receipt(rig.engine, rig.queue, "b")
    assert (found.done, found.complete) == (2, True)
    assert found.done_digest == found.added_digest
    assert rig.queue.batches.finished == {"b"}
    assert fresh
    rig.assert_sound()


@pytest.mark.parametrize("begins_again", [False, True])
def test_redrive_after_its_batch_was_forgotten_leaves_the_item_without_one(
    rig: Rig, begins_again: bool
) -> None:
    """A new batch of the same name is another batch: it must not count what it never had."""
    (item_id,) = make_dead(rig, NewItems([b"a"], batch="b"))
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()
    assert rig.stats().batches == 0
    if begins_again:
        rig.add_items(NewItems([b"new"], batch="b"))

    redrive(rig.engine, rig.queue, [item_id], rig.now_ms)

    assert whereabouts(rig, item_id)[1].batch == 0
    if begins_again:
        assert receipt(rig.engine, rig.queue, "b").live == 1
    rig.assert_sound()


# --- a slice --------------------------------------------------------------------------------------


def test_redrive_first_goes_through_all_dead_letters_slice_by_slice(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"x"] * 25))
    slices = []

    while (slice_ := redrive_first(rig.engine, rig.queue, 10, rig.now_ms))[0]:
        slices.append(slice_)
        rig.assert_sound()

    assert slices == [(10, True), (10, True), (5, False)]
    assert rig.ready_ids() == dead


def test_redrive_first_after_slices_finds_one_that_died_meanwhile_with_a_lower_id(
    rig: Rig,
) -> None:
    """Walks begin where the last one stopped, so that they do not pass over what is deleted."""
    (early,) = rig.add(b"early")
    held = rig.poll(lease_ms=60_000)
    make_dead(rig, NewItems([b"x", b"y"]))
    assert redrive_first(rig.engine, rig.queue, 10, rig.now_ms) == (2, False)
    allow_attempts(rig, 1)

    rig.fail([early], held.lease_id)

    assert redrive_first(rig.engine, rig.queue, 10, rig.now_ms) == (1, False)
    assert early in rig.ready_ids()
    rig.assert_sound()


def test_redrive_first_without_dead_letters_changes_nothing(rig: Rig) -> None:
    rig.add(b"a")
    disk, memory = rig.dump(), rig.memory()

    assert redrive_first(rig.engine, rig.queue, 10, rig.now_ms) == (0, False)

    assert rig.dump() == disk
    assert rig.memory() == memory
