"""Charge: how long an item that failed stays hidden, and when it is a dead letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.attempts import Failed, decode_attempts
from queueber.db.records.cutting import singles
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import due_part
from queueber.db.records.runs import (
    MARK_ATTEMPTS_MAX,
    MarkFields,
    encode_run,
)
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.fail import Failure, backoff_ms, charge
from queueber.engine.queue.lifecycle import DeathReason
from queueber.ids import ItemId
from queueber.limits import ATTEMPTS_CEILING, HOUR_MS
from queueber.model import AttemptEnd, NewItems, QueueSettings
from tests.engine.making import allow_attempts, run_of, whereabouts
from tests.support.entries import history_of
from tests.support.rig import Rig

ids = st.binary(min_size=16, max_size=16).map(ItemId)
attempts_of_any_number = st.integers(1, ATTEMPTS_CEILING)
ID = ItemId(bytes(range(16)))

# --- the backoff ----------------------------------------------------------------------------------


@given(
    steps=st.lists(st.integers(0, HOUR_MS), min_size=1, max_size=5),
    attempts=attempts_of_any_number,
    item_id=ids,
)
def test_backoff_of_a_list_takes_the_step_of_the_attempt_and_repeats_the_last(
    steps: list[int], attempts: int, item_id: ItemId
) -> None:
    """To the millisecond: chance takes nothing off a list."""
    settings = QueueSettings(backoff_ms=tuple(steps), backoff_jitter=1.0)

    expected = steps[attempts - 1] if attempts <= len(steps) else steps[-1]

    assert backoff_ms(settings, item_id, attempts) == expected


def test_backoff_without_jitter_is_base_times_factor_up_to_the_cap() -> None:
    settings = QueueSettings(
        backoff_base_ms=100, backoff_factor=3.0, backoff_cap_ms=2000, backoff_jitter=0.0
    )

    delays_ms = [backoff_ms(settings, ID, attempts) for attempts in range(1, 7)]

    assert delays_ms == [100, 300, 900, 2000, 2000, 2000]


@given(
    base_ms=st.integers(0, HOUR_MS),
    factor=st.floats(1, 100),
    cap_ms=st.integers(0, HOUR_MS),
    jitter=st.floats(0, 1),
    attempts=attempts_of_any_number,
    item_id=ids,
)
def test_backoff_of_any_settings_lies_between_what_chance_may_take_off_and_the_cap(
    base_ms: int, factor: float, cap_ms: int, jitter: float, attempts: int, item_id: ItemId
) -> None:
    settings = QueueSettings(
        backoff_base_ms=base_ms,
        backoff_factor=factor,
        backoff_cap_ms=cap_ms,
        backoff_jitter=jitter,
    )
    try:
        full_ms = min(base_ms * factor ** (attempts - 1), cap_ms)
    except OverflowError:
        full_ms = cap_ms if base_ms else 0

    delay_ms = backoff_ms(settings, item_id, attempts)

    assert full_ms * (1 - jitter) - 1 <= delay_ms <= full_ms + 1
    assert delay_ms <= cap_ms
    assert delay_ms == backoff_ms(settings, item_id, attempts), "chance comes from the id alone"


@pytest.mark.parametrize("factor", [1.0, 2.0, 1e300])
def test_backoff_after_a_thousand_attempts_does_not_overflow(factor: float) -> None:
    settings = QueueSettings(backoff_base_ms=1, backoff_factor=factor, backoff_jitter=0.0)

    expected = 1 if factor == 1.0 else HOUR_MS
    assert backoff_ms(settings, ID, ATTEMPTS_CEILING) == expected


@pytest.mark.parametrize("factor", [1.0, 1.00001, 100.0])
def test_backoff_without_a_limit_of_attempts_stays_below_its_cap(factor: float) -> None:
    settings = QueueSettings(
        attempts_max=0, backoff_base_ms=1000, backoff_factor=factor, backoff_jitter=0.0
    )

    delay_ms = backoff_ms(settings, ID, MARK_ATTEMPTS_MAX)

    assert delay_ms == {1.0: 1000, 1.00001: 1926, 100.0: HOUR_MS}[factor]


@pytest.mark.parametrize("first", [0, 1 << 40, int.from_bytes(ID)])
def test_backoff_of_items_that_failed_together_brings_them_back_apart(first: int) -> None:
    """The ids of one add are neighbours. Still they fall on all of what chance may take off."""
    settings = QueueSettings(backoff_base_ms=100_000, backoff_jitter=0.5)

    delays_ms = [backoff_ms(settings, ItemId((first + n).to_bytes(16)), 1) for n in range(100)]

    assert len(set(delays_ms)) > 90
    assert {delay_ms // 10_000 for delay_ms in delays_ms} >= {5, 6, 7, 8, 9}


def test_backoff_of_one_item_draws_anew_at_each_attempt() -> None:
    settings = QueueSettings(
        backoff_base_ms=100_000, backoff_factor=1.0, backoff_cap_ms=100_000, backoff_jitter=0.5
    )

    delays_ms = [backoff_ms(settings, ID, attempts) for attempts in range(1, 21)]

    assert len(set(delays_ms)) == 20


# --- what a charge leaves behind ------------------------------------------------------------------


def charge_held(rig: Rig, delay_ms: int | None) -> tuple[list[bytes], list[bool]]:
    """Charge all of two items that are held."""
    ids = rig.add(b"a", b"bb")
    lease_id = rig.poll(2).lease_id
    rig.now_ms += 5
    tx = Transaction(rig.engine.kernel, rig.now_ms, rig.queue)
    (taken,) = rig.queue.leases.take(tx, ids, [lease_id] * 2).runs
    failures = [
        Failure(item, f"error {at}", delay_ms, DeathReason.FAILED)
        for at, item in enumerate(singles(taken, rig.queue.blocks.reader()[taken]))
    ]
    comes_back = charge(tx, failures)
    tx.commit()
    return ids, comes_back


@pytest.mark.parametrize("delay_ms", [0, 70])
def test_charge_with_a_delay_hides_each_item_for_so_long(rig: Rig, delay_ms: int) -> None:
    ids, comes_back = charge_held(rig, delay_ms)

    family = Family.DELAYED if delay_ms else Family.VISIBILITY_INDEX
    assert comes_back == [True, True]
    joined = run_of(ids, 3, MarkFields(attempts=1))
    assert [(key[-24:], value) for key, value in rig.dump()[family.family_name]] == [
        (due_part(rig.now_ms + delay_ms, ids[1]), encode_run(joined))
    ]
    assert rig.dump()["attempts"] == [
        (rig.queue.prefix + item_id, history_of([rig.now_ms], f"error {at}"))
        for at, item_id in enumerate(ids)
    ]
    rig.assert_sound()


def test_charge_without_a_delay_hides_each_item_as_the_backoff_says(rig: Rig) -> None:
    ids, _ = charge_held(rig, None)

    settings = rig.queue.settings
    assert sorted(key[-24:] for key in rig.keys(Family.DELAYED)) == sorted(
        due_part(rig.now_ms + backoff_ms(settings, ItemId(item_id), 1), item_id) for item_id in ids
    )
    assert rig.engine.agenda.next_ms() <= rig.now_ms + 1000


def test_charge_of_the_last_attempt_makes_dead_letters(rig: Rig) -> None:
    allow_attempts(rig, 1)

    ids, comes_back = charge_held(rig, 70)

    assert comes_back == [False, False]
    assert [decode_dead(key[4:], value) for key, value in rig.dump()["dead"]] == [
        (rig.now_ms, 1, run_of(ids, 3, MarkFields(attempts=1)))
    ]
    assert (rig.stats().dead, rig.stats().died_total, rig.stats().failed_total) == (2, 2, 2)
    assert rig.keys(Family.DELAYED) == rig.ready_ids() == []
    rig.assert_sound()


def test_charge_again_keeps_the_times_of_all_and_the_error_of_the_last(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    times_ms = []
    for at in range(5):
        rig.now_ms += 10
        times_ms.append(rig.now_ms)
        polled = rig.poll()
        rig.fail(polled.ids, polled.lease_id, f"error {at}", delay_ms=0)

    ((key, value),) = rig.dump()["attempts"]
    assert key == rig.queue.prefix + item_id
    history = decode_attempts(value)
    assert history.times_ms == times_ms
    assert history.last == [Failed(AttemptEnd.FAILED, f"error {at}") for at in range(5)]
    assert whereabouts(rig, item_id) == (Family.VISIBILITY_INDEX, MarkFields(attempts=5))
    rig.assert_sound()


def test_charge_keeps_the_group_batch_and_priority_of_an_item(rig: Rig) -> None:
    rig.add_items(NewItems([b"a", b"b"], priorities=[7, 7], batch="b"))
    rig.poll(2, lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()
    polled = rig.poll()

    rig.fail(polled.ids, polled.lease_id, delay_ms=0)

    _, mark = whereabouts(rig, polled.ids[0])
    assert mark == MarkFields(batch=1, attempts=1, group_max=1, priority=7, uncharged=1)


# --- without a limit ------------------------------------------------------------------------------


def test_item_without_a_limit_of_attempts_never_dies_and_is_completed_however_often_it_failed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mark counts up to 65,535; of the times of failures the last ones are kept."""
    monkeypatch.setattr("queueber.engine.queue.fail.MARK_ATTEMPTS_MAX", 5)
    monkeypatch.setattr("queueber.engine.queue.complete.MARK_ATTEMPTS_MAX", 5)
    monkeypatch.setattr("queueber.engine.queue.poll.MARK_ATTEMPTS_MAX", 5)
    allow_attempts(rig, 0)
    (item,) = rig.add(b"x")
    for _ in range(8):
        polled = rig.poll()
        rig.fail(polled.ids, polled.lease_id, delay_ms=0)

    polled = rig.poll()

    assert (polled.ids, polled.details.attempts) == ([item], [5])
    assert rig.complete(polled.ids, polled.lease_id) == [True]
    assert rig.stats().dead == 0


def test_times_of_failures_are_kept_up_to_their_limit(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("queue.fail", "integrity.check_items", "integrity.rebuild_items"):
        monkeypatch.setattr(f"queueber.engine.{module}.ATTEMPTS_CEILING", 3)
    allow_attempts(rig, 0)
    (item,) = rig.add(b"x")
    for _ in range(5):
        polled = rig.poll()
        rig.fail(polled.ids, polled.lease_id, delay_ms=0)
        rig.now_ms += 1

    ((_, history),) = rig.dump()["attempts"]
    assert decode_attempts(history)[0] == [rig.now_ms - 3, rig.now_ms - 2, rig.now_ms - 1]
    assert whereabouts(rig, item)[1].attempts == 5
    rig.assert_sound()
