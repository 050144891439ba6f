"""Dead letters that are older than the queue keeps them are dropped: those, and no others."""

from dataclasses import replace
from typing import Any

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.engine.queue.dead_letters import DeadLetters
from queueber.engine.queue.lifecycle import TRANSITIONS, State
from queueber.errors import Unavailable
from queueber.limits import DEAD_READ_REST_MS, STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import NewItems, Receipt
from tests.engine.making import counters_aside, make_dead, make_dead_run
from tests.support.operations import cancel, configure_queue, receipt, redrive, sweep
from tests.support.rig import QUEUE, Rig, refuse_write

AGE_MS = 1000


def keep_for(rig: Rig, age_ms: int) -> None:
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, dead_age_ms=age_ms), rig.now_ms)


def sweep_for(rig: Rig, ms: int) -> None:
    """Sweep whenever something is due, until so much time has passed."""
    until_ms = rig.now_ms + ms
    while (due_ms := rig.engine.agenda.next_ms()) <= until_ms:
        rig.now_ms = max(rig.now_ms, due_ms)
        rig.sweep_all()
    rig.now_ms = until_ms


def counts(rig: Rig) -> tuple[int, int]:
    return rig.stats().dead, rig.stats().dead_dropped_total


def test_dead_letter_stays_until_its_age_and_goes_then(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    (first,) = make_dead(rig, NewItems([b"a"]))
    rig.now_ms += 10
    (second,) = make_dead(rig, NewItems([b"bb"]))

    rig.now_ms += AGE_MS - 11
    rig.sweep_all()
    assert rig.ids(Family.DEAD) == [first, second]

    rig.now_ms += 1
    rig.sweep_all()

    assert rig.ids(Family.DEAD) == rig.stored_ids() == [second]
    assert counts(rig) == (1, 1)
    assert rig.stats().contents_bytes == 2
    assert rig.stats().cancelled_total == 0
    assert rig.engine.agenda.next_ms() == rig.now_ms + 10
    rig.assert_sound()
    assert TRANSITIONS[State.DEAD, "drop, of its age"] is State.GONE


def test_dropped_letters_leave_nothing_behind_and_items_in_other_states_stay(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    others = rig.add(b"held", b"delayed", delays_ms=[0, 10 * AGE_MS])
    rig.poll(lease_ms=10 * AGE_MS)
    before = counters_aside(rig)
    make_dead_run(rig, NewItems([b"a", b"b", b"c"], attributes=[{"n": "v"}] * 3))

    sweep_for(rig, AGE_MS)

    assert counters_aside(rig) == before
    assert rig.stored_ids() == others
    assert counts(rig) == (0, 3)
    rig.assert_sound()


def test_batch_counts_a_dropped_letter_as_dead_as_before(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    make_dead(rig, NewItems([b"a", b"b"], batch="nightly"))
    before = receipt(rig.engine, rig.queue, "nightly")
    assert (before.dead, before.live, before.complete) == (2, 0, True)

    sweep_for(rig, AGE_MS)

    after: Receipt = receipt(rig.engine, rig.queue, "nightly")
    assert after == before
    assert counts(rig) == (0, 2)


def test_letter_that_was_redriven_or_cancelled_in_time_is_not_dropped(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    redriven, cancelled = make_dead_run(rig, NewItems([b"a", b"b"]))
    redrive(rig.engine, rig.queue, [redriven], rig.now_ms)
    cancel(rig.engine, rig.queue, [cancelled], rig.now_ms)

    sweep_for(rig, 2 * AGE_MS)

    assert rig.ready_ids() == rig.stored_ids() == [redriven]
    assert counts(rig) == (0, 0)
    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_rest_of_a_run_that_was_taken_apart_goes_at_the_time_of_its_death(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    a, b, c = make_dead_run(rig, NewItems([b"a", b"b", b"c"]))
    rig.now_ms += AGE_MS // 2
    redrive(rig.engine, rig.queue, [b], rig.now_ms)
    assert rig.ids(Family.DEAD) == [a, c]

    sweep_for(rig, AGE_MS // 2)

    assert rig.stored_ids() == [b]
    assert counts(rig) == (0, 2)
    rig.assert_sound()


def test_without_an_age_dead_letters_stay_and_nothing_is_due(rig: Rig) -> None:
    ids = make_dead(rig, NewItems([b"a"]))

    rig.now_ms += 10**12
    rig.sweep_all()

    assert rig.ids(Family.DEAD) == ids
    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_letters_from_before_the_setting_are_found(rig: Rig) -> None:
    make_dead(rig, NewItems([b"a"]))
    rig.now_ms += AGE_MS
    (young,) = make_dead(rig, NewItems([b"b"]))

    keep_for(rig, AGE_MS)
    rig.sweep_all()

    assert rig.ids(Family.DEAD) == [young]
    assert rig.engine.agenda.next_ms() == rig.now_ms + AGE_MS


@pytest.mark.parametrize("age_ms", [AGE_MS // 2, 2 * AGE_MS, 0])
def test_change_of_the_age_applies_to_letters_that_are_there(rig: Rig, age_ms: int) -> None:
    keep_for(rig, AGE_MS)
    ids = make_dead(rig, NewItems([b"a"]))
    died_ms = rig.now_ms
    sweep_for(rig, AGE_MS // 2)

    keep_for(rig, age_ms)
    rig.sweep_all()

    is_over = age_ms == AGE_MS // 2
    assert rig.ids(Family.DEAD) == ([] if is_over else ids)
    sweep_for(rig, 2 * AGE_MS)
    assert rig.ids(Family.DEAD) == ([] if age_ms else ids)
    assert rig.engine.agenda.next_ms() == NEVER_MS
    assert rig.now_ms == died_ms + AGE_MS // 2 + 2 * AGE_MS


def test_letters_are_found_after_a_restart(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    (old,) = make_dead(rig, NewItems([b"a"]))
    rig.now_ms += 1
    (young,) = make_dead(rig, NewItems([b"b"]))
    rig.now_ms += AGE_MS - 1
    rig.reopen()

    rig.sweep_all()

    assert rig.ids(Family.DEAD) == [young]
    sweep_for(rig, 1)
    assert counts(rig) == (0, 2)
    rig.reopen()
    assert counts(rig) == (0, 2)
    rig.assert_sound()
    assert old not in rig.stored_ids()


def test_slices_have_a_limit_and_the_next_goes_on_after_a_rest(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.queue.dead_letters.SWEEP_SLICE_ITEMS", 10)
    keep_for(rig, AGE_MS)
    ids = make_dead(rig, NewItems([b"x"] * 25))
    rig.now_ms += AGE_MS
    left = []
    for _ in range(3):
        sweep(rig.engine, rig.now_ms, 10)
        rig.assert_sound()
        left.append(rig.ids(Family.DEAD))
        assert sweep(rig.engine, rig.now_ms, 10) is None, "it rests"
        rig.now_ms = min(rig.now_ms + DEAD_READ_REST_MS, rig.engine.agenda.next_ms())

    assert left == [ids[10:], ids[20:], []]
    assert rig.engine.agenda.next_ms() == NEVER_MS


def test_slice_ends_once_its_runs_have_enough_items(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    runs = [make_dead_run(rig, NewItems([b"x"] * 8)) for _ in range(3)]
    rig.now_ms += AGE_MS

    sweep(rig.engine, rig.now_ms, 10)

    assert rig.ids(Family.DEAD) == runs[2]


def test_queue_of_which_nothing_is_due_is_read_once_and_not_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_for(rig, AGE_MS)
    make_dead(rig, NewItems([b"x"] * 25))
    rig.now_ms += 7
    rig.reopen()
    slices: list[int] = []
    take = DeadLetters.take_old

    def taken(own: DeadLetters, *given: Any) -> Any:
        slices.append(rig.now_ms)
        return take(own, *given)

    monkeypatch.setattr(DeadLetters, "take_old", taken)
    until_ms = rig.now_ms + AGE_MS - 8
    while rig.engine.agenda.next_ms() <= until_ms:
        rig.now_ms = max(rig.now_ms, rig.engine.agenda.next_ms())
        rig.sweep_all(10)

    assert len(slices) == 3
    assert counts(rig) == (25, 0)


def test_walk_starts_at_the_first_letter_that_is_left(rig: Rig) -> None:
    """A walk from the start would come across every entry that was deleted since."""
    keep_for(rig, AGE_MS)
    ids = make_dead(rig, NewItems([b"x"] * 15))
    rig.now_ms += 100
    young = make_dead(rig, NewItems([b"x"] * 3))
    rig.now_ms += AGE_MS - 100

    lows = []
    for _ in range(2):
        sweep(rig.engine, rig.now_ms, 10)
        lows.append(rig.queue.dead_letters.low)
        rig.now_ms += 10

    assert lows == [ids[9], young[0]]


def test_letter_that_dies_behind_a_round_is_found_by_the_next(rig: Rig) -> None:
    """Its id is lower than those that the round has passed."""
    keep_for(rig, AGE_MS)
    (early,) = rig.add(b"early")
    held = rig.poll(lease_ms=100 * AGE_MS)
    make_dead(rig, NewItems([b"x"] * 20))
    rig.now_ms += AGE_MS - 1
    rig.reopen()
    sweep(rig.engine, rig.now_ms, 10)
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, attempts_max=1), rig.now_ms)
    rig.fail([early], held.lease_id)

    sweep_for(rig, AGE_MS - 1)
    assert rig.ids(Family.DEAD) == [early]

    sweep_for(rig, 1)
    assert counts(rig) == (0, 21)


def test_clock_that_was_set_back_does_not_make_it_rest_for_long(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    make_dead(rig, NewItems([b"x"] * 20))
    rig.now_ms += AGE_MS
    sweep(rig.engine, rig.now_ms, 10)
    assert counts(rig) == (10, 10)

    rig.now_ms -= AGE_MS // 2 + DEAD_READ_REST_MS
    rig.engine.agenda.schedule(rig.queue.queue_id, rig.now_ms)
    rig.sweep_all(10)
    sweep_for(rig, AGE_MS // 2 + DEAD_READ_REST_MS)

    assert counts(rig) == (0, 20)


def test_refused_write_drops_nothing_and_is_tried_again(rig: Rig) -> None:
    keep_for(rig, AGE_MS)
    ids = make_dead(rig, NewItems([b"a", b"b"]))
    rig.now_ms += AGE_MS
    disk = rig.dump()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            sweep(rig.engine, rig.now_ms)

    assert rig.dump() == disk
    assert rig.ids(Family.DEAD) == ids
    sweep_for(rig, STORE_RETRY_MS)
    assert counts(rig) == (0, 2)


def test_hundred_thousand_are_read_within_a_minute() -> None:
    assert 100_000 / SWEEP_SLICE_ITEMS * DEAD_READ_REST_MS <= 60_000
