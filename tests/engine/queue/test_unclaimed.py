"""Items that nobody leases in time become dead letters."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.engine.queue.ready_index import ReadyWindow, Replaced
from queueber.model import (
    NO_OPTIONS,
    ItemInfo,
    ItemOptions,
    ItemState,
    NewItems,
    QueueSettings,
)
from tests.support.operations import cancel, peek, purge, receipt, redrive
from tests.support.rig import Rig

EXPIRY = Family.ITEM_EXPIRY
REASON = "nobody leased it in time (expires)"


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.assert_sound()
    made.close()


def add(rig: Rig, *expires_ms: int, delay_ms: int = 0, batch: str = "") -> list[bytes]:
    options = [ItemOptions(expires_ms=each) for each in expires_ms]
    contents = [b"x"] * len(options)
    delays_ms = [delay_ms] * len(options) if delay_ms else ()
    items = NewItems(contents, delays_ms, batch=batch, options=options)
    return list(rig.add_items(items).ids)


def letters(rig: Rig) -> list[ItemInfo]:
    return peek(rig.engine, rig.queue, ItemState.DEAD, b"", 100, 10_000)[0]


def pass_ms(rig: Rig, ms: int) -> None:
    rig.now_ms += ms
    rig.sweep_all()


@pytest.mark.parametrize("delay_ms", [0, 500])
def test_an_item_dies_at_its_time_if_nobody_has_leased_it(rig: Rig, delay_ms: int) -> None:
    (item_id,) = add(rig, 100, delay_ms=delay_ms)

    pass_ms(rig, 99)
    assert letters(rig) == []
    pass_ms(rig, 1)

    (letter,) = letters(rig)
    assert (letter.id, letter.reason, letter.at_ms) == (item_id, REASON, rig.now_ms)
    assert (letter.attempts, letter.last_error, letter.deliveries) == (0, "", 0)
    assert (rig.stats().died_total, rig.stats().failed_total) == (1, 0)
    assert rig.stats().unclaimed_total == 1
    assert rig.keys(EXPIRY) == []


def test_only_items_whose_time_has_come_die(rig: Rig) -> None:
    ids = add(rig, 100, 300, 0, 100)

    pass_ms(rig, 100)

    assert [each.id for each in letters(rig)] == [ids[0], ids[3]]
    assert rig.ready_ids() == ids[1:3]
    assert rig.engine.agenda.next_ms() == rig.now_ms + 200


def test_the_batch_counts_it_as_dead(rig: Rig) -> None:
    add(rig, 100, batch="b")

    pass_ms(rig, 100)

    found = receipt(rig.engine, rig.queue, "b")
    assert (found.dead, found.live, found.complete) == (1, 0, True)


@pytest.mark.parametrize("how", ["held", "released", "failed", "lost"])
def test_whoever_leases_an_item_in_time_ends_its_expiry(rig: Rig, how: str) -> None:
    (item_id,) = add(rig, 100)
    polled = rig.poll(lease_ms=1000 if how != "lost" else 50)
    if how == "released":
        rig.release([item_id], polled.lease_id)
    elif how == "failed":
        rig.fail([item_id], polled.lease_id)

    pass_ms(rig, 500)

    assert letters(rig) == []
    assert rig.keys(EXPIRY) == []


def test_a_poll_gives_no_item_whose_time_has_passed_before_the_sweep_has_come(rig: Rig) -> None:
    ids = add(rig, 100, 0, 100, 300)
    rig.now_ms += 100

    polled = rig.poll(10)

    assert list(polled.ids) == [ids[1], ids[3]]
    assert [each.id for each in letters(rig)] == [ids[0], ids[2]]
    rig.assert_sound()


def test_a_poll_that_meets_only_items_whose_time_has_passed_gets_nothing(rig: Rig) -> None:
    add(rig, 100, 100)
    rig.now_ms += 100

    assert not rig.poll(1).packed
    rig.sweep_all()

    assert len(letters(rig)) == rig.stats().unclaimed_total == 2


def test_bytes_of_an_answer_are_those_of_items_that_are_given(rig: Rig) -> None:
    add(rig, 100)
    (second,) = rig.add(b"y" * 90)
    rig.now_ms += 100

    assert list(rig.poll(2, bytes_max=100).ids) == [second]


def test_a_redriven_item_does_not_expire_again_and_keeps_its_options(rig: Rig) -> None:
    options = [ItemOptions(1, (5,), 30, 100)]
    (item_id,) = rig.add_items(NewItems([b"x"], options=options)).ids
    pass_ms(rig, 100)

    redrive(rig.engine, rig.queue, [item_id], rig.now_ms)
    pass_ms(rig, 1000)

    polled = rig.poll()
    assert list(polled.details.timeouts_ms) == [30]
    rig.fail([item_id], polled.lease_id)
    assert letters(rig)[0].reason == "failed once (attempts_max)"


def test_its_key_still_deduplicates(rig: Rig) -> None:
    (first,) = rig.add_items(
        NewItems([b"x"], keys=["k"], options=[ItemOptions(expires_ms=100)])
    ).ids
    pass_ms(rig, 100)

    again = rig.add_items(NewItems([b"x"], keys=["k"]))

    assert (list(again.ids), list(again.duplicates)) == ([first], [True])


@pytest.mark.parametrize("state", [ItemState.READY, ItemState.DELAYED])
@pytest.mark.parametrize("how", ["cancel", "purge"])
def test_expiry_goes_when_the_item_goes(rig: Rig, how: str, state: ItemState) -> None:
    ids = add(rig, 100, 200, delay_ms=0 if state is ItemState.READY else 50)

    if how == "cancel":
        cancel(rig.engine, rig.queue, ids, rig.now_ms)
    else:
        purge(rig.engine, rig.queue, state, 10, rig.now_ms)

    assert rig.keys(EXPIRY) == []
    assert rig.queue.counters.expiring == 0
    pass_ms(rig, 1000)
    assert letters(rig) == []


def test_a_slice_moves_so_many_and_the_next_goes_on(rig: Rig) -> None:
    add(rig, *[100] * 25)
    rig.now_ms += 100

    slices = rig.sweep_all(10)

    assert len(slices) >= 3
    assert len(letters(rig)) == 25


def test_a_reopened_store_knows_when_items_expire(rig: Rig) -> None:
    add(rig, 100)
    rig.reopen()
    assert rig.engine.agenda.next_ms() == rig.now_ms + 100

    pass_ms(rig, 100)

    assert len(letters(rig)) == 1


def test_an_item_that_waits_for_its_cap_dies_and_so_does_one_that_was_let_go() -> None:
    rig = Rig(QueueSettings(cap_by="who", cap_by_concurrency_max=1))
    options = [NO_OPTIONS, *[ItemOptions(expires_ms=100)] * 2, NO_OPTIONS]
    whose = [{"who": "a"}] * 4
    ids = list(rig.add_items(NewItems([b"x"] * 4, attributes=whose, options=options)).ids)
    first = rig.poll(4)
    assert list(first.ids) == ids[:1]
    rig.remove(ids[:1], first.lease_id)

    rig.now_ms += 100
    polled = rig.poll(4)
    rig.assert_sound()
    rig.sweep_all()

    assert [each.id for each in letters(rig)] == ids[1:3]
    polled = polled if polled.packed else rig.poll(4)
    assert list(polled.ids) == ids[3:]
    rig.assert_sound()
    rig.close()


def test_an_item_that_waits_for_another_dies_at_its_time_and_so_does_what_waits_for_it(
    rig: Rig,
) -> None:
    (first,) = rig.add(b"first")
    options = [ItemOptions(expires_ms=100)]
    (second,) = rig.add_items(NewItems([b"second"], after=[first], options=options)).ids
    (third,) = rig.add_items(NewItems([b"third"], after=[second])).ids

    pass_ms(rig, 100)

    reasons = {each.id: each.reason for each in letters(rig)}
    assert reasons.keys() == {second, third}
    assert reasons[second] == REASON
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)
    pass_ms(rig, 100)
    assert len(letters(rig)) == 2


@pytest.mark.parametrize("how", ["expire", "cancel"])
def test_many_that_leave_at_once_cost_one_pass_through_those_that_stay(
    rig: Rig, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items that are added one by one are one by one in memory, too: up to a million."""
    ids = [item_id for _ in range(50) for item_id in add(rig, 100)]
    (stays,) = rig.add(b"stays")
    passes: list[int] = []
    replace = ReadyWindow.replace

    def counted(window: ReadyWindow, replaced: Replaced) -> None:
        passes.append(len(replaced))
        replace(window, replaced)

    monkeypatch.setattr(ReadyWindow, "replace", counted)
    if how == "expire":
        pass_ms(rig, 100)
    else:
        assert cancel(rig.engine, rig.queue, ids, rig.now_ms) == [True] * 50

    assert passes == [50]
    assert rig.ready_ids() == [stays]
    assert len(letters(rig)) == (50 if how == "expire" else 0)
    assert list(rig.poll(9).ids) == [stays]
