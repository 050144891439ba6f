"""Suspects: given only into small holder, so that the culprit is soon alone."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.records.cutting import join_entries, singles
from queueber.db.records.runs import at_time_of, decode_mark, encode_mark, mark_group_max
from queueber.engine.queue.isolation import HeldTogether
from queueber.engine.queue.poll import Selection
from queueber.engine.queue.queue_state import QueueTx
from queueber.limits import MIB
from queueber.model import Polled
from tests.engine.making import make_quarantined, mark_of
from tests.support.operations import held_by, poll, run
from tests.support.rig import Rig, assert_window_is_the_front_of_the_index


def poll_in(rig: Rig, holder: HeldTogether, counts: list[int]) -> list[Polled]:
    return poll(
        rig.engine,
        rig.queue,
        counts,
        lease_ms=1000,
        answer_bytes_max=MIB,
        now_ms=rig.now_ms,
        holder=holder,
    )


def sizes(answers: list[Polled]) -> list[int]:
    return [len(answer.ids) for answer in answers]


# --- groups ---------------------------------------------------------------------------------------


def test_suspects_go_together_only_as_many_as_each_allows(rig: Rig) -> None:
    make_quarantined(rig, 10)

    assert sizes(rig.poll_many([100, 3, 100])) == [5, 3, 2]
    rig.assert_sound()


def test_plain_items_ahead_of_a_suspect_go_without_it(rig: Rig) -> None:
    quarantined = make_quarantined(rig, 2)
    rig.now_ms -= 1
    plain = rig.add(*[b"x"] * 10)

    first, second, third = rig.poll_many([100, 100, 100])

    assert first.ids == plain
    assert [list(second.ids), list(third.ids)] == [[each] for each in quarantined]


def test_plain_items_behind_a_suspect_fill_its_group(rig: Rig) -> None:
    quarantined = make_quarantined(rig, 6)
    rig.now_ms += 1
    plain = rig.add(*[b"x"] * 10)

    answers = rig.poll_many([100] * 4)

    assert [list(answer.ids) for answer in answers] == [quarantined[:3], quarantined[3:], plain, []]


def limit_each(rig: Rig, limits: list[int]) -> None:
    """Give each of the items of the one ready run a limit, 0 for none."""
    ((due, whole),) = rig.queue.ready.windows[4].entries
    items = singles(whole, rig.queue.blocks.reader()[whole])

    def operation(tx: QueueTx) -> None:
        marked = [
            at_time_of(
                due,
                item._replace(mark=encode_mark(decode_mark(item.mark)._replace(group_max=limit))),
            )
            for item, limit in zip(items, limits, strict=True)
        ]
        rig.queue.ready.take_some(tx, 4, (due, whole), [])
        rig.queue.ready.put(tx, join_entries(marked))
        tx.counters.quarantined += len([limit for limit in limits if limit])

    run(rig.engine, rig.queue, rig.now_ms, operation)


@settings(max_examples=100, deadline=None)
@given(
    limits=st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 5]), min_size=1, max_size=15),
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    held=st.integers(0, 4),
)
def test_groups_of_any_limits_are_as_long_as_all_in_them_allow(
    limits: list[int], counts: list[int], held: int
) -> None:
    rig = Rig()
    try:
        ids = rig.add(*[b"x"] * len(limits))
        limit_each(rig, limits)
        rig.assert_sound()
        limit_of = dict(zip(ids, limits, strict=True))
        left = {
            4: [each for each in ids if not limit_of[each]],
            14: [each for each in ids if limit_of[each]],
        }
        holder = HeldTogether(held)
        blocks = rig.queue.blocks.reader()
        selection = Selection(
            rig.queue, blocks, sum(counts), bytes_max=MIB, holder=holder, now_ms=rig.now_ms
        )

        for count in counts:
            before = holder.group_max
            runs = selection.take(count)
            group = [item_id for each in runs for item_id in each.ids]
            assert len(group) <= count
            for each in runs:
                assert {limit_of[item_id] for item_id in each.ids} == {mark_group_max(each.mark)}
            for of_level in left.values():
                taken = [item_id for item_id in group if item_id in of_level]
                assert taken == of_level[: len(taken)]
                del of_level[: len(taken)]
            group_limits = [limit for item_id in group if (limit := limit_of[item_id])]
            assert holder.group_max == min(filter(None, [before, *group_limits]), default=0)
            assert not group or not holder.group_max or holder.items <= holder.group_max
            if len(group) < count and not (0 < holder.group_max <= holder.items):
                assert left[4] == [], "a plain item fits as long as the holder may grow"
                assert not left[14] or limit_of[left[14][0]] <= holder.items
        run(rig.engine, rig.queue, rig.now_ms, selection.take_out)
        assert rig.ready_ids() == [*left[4], *left[14]]
        assert_window_is_the_front_of_the_index(rig)
    finally:
        rig.close()


# --- holder --------------------------------------------------------------------------------------


def test_company_is_what_the_leases_still_hold(rig: Rig) -> None:
    make_quarantined(rig, 6)
    one, two = rig.poll_many([2, 3])
    rig.complete(one.ids[:1], one.lease_id)

    assert held_by(rig.engine, rig.queue, [one.lease_id, two.lease_id]) == HeldTogether(4, 3)
    assert held_by(rig.engine, rig.queue, [bytes(16)]) == HeldTogether(0, 0)
    assert held_by(rig.engine, rig.queue, []) == HeldTogether(0, 0)


def test_company_that_holds_a_suspect_gets_no_more_than_it_allows(rig: Rig) -> None:
    make_quarantined(rig, 6)
    rig.add(*[b"x"] * 5)
    first = rig.poll(2)
    holder = held_by(rig.engine, rig.queue, [first.lease_id])

    assert sizes(poll_in(rig, holder, [1, 5, 5])) == [1, 0, 0]
    assert holder == HeldTogether(3, 3)
    rig.assert_sound()


def test_company_of_plain_items_gets_a_suspect_only_if_it_is_small_enough(rig: Rig) -> None:
    rig.add(b"x", b"y")
    held = rig.poll(2)
    quarantined = make_quarantined(rig, 4)
    holder = held_by(rig.engine, rig.queue, [held.lease_id])
    disk = rig.dump()

    assert sizes(poll_in(rig, holder, [5])) == [0]
    assert rig.dump() == disk

    rig.complete(held.ids[:1], held.lease_id)
    holder = held_by(rig.engine, rig.queue, [held.lease_id])
    assert [list(answer.ids) for answer in poll_in(rig, holder, [5])] == [quarantined[:1]]
    rig.assert_sound()


# --- the poison item ------------------------------------------------------------------------------


def find_poison(rig: Rig, poison: bytes, done: list[bytes]) -> list[int]:
    """Workers poll up to a hundred. Who has the poison item dies; the others complete all.

    Returns the sizes of the leases that died, until the item is charged.
    """
    deaths = []
    while not mark_of(rig, poison).attempts:
        polled = rig.poll(100, lease_ms=50)
        if poison in polled.ids:
            deaths.append(len(polled.ids))
            rig.now_ms += 50
            rig.sweep_all()
        else:
            assert all(rig.complete(polled.ids, polled.lease_id))
            done += polled.ids
    return deaths


def do_the_rest(rig: Rig, poison: bytes, done: list[bytes]) -> None:
    while (polled := rig.poll(100, lease_ms=50)).ids:
        if poison in polled.ids:
            assert polled.ids == [poison], "from here on it is alone"
            rig.fail([poison], polled.lease_id, delay_ms=1000)
        else:
            assert all(rig.complete(polled.ids, polled.lease_id))
            done += polled.ids


@pytest.mark.parametrize("poison_at", [0, 1, 2, 50, 51])
def test_poison_item_among_a_hundred_is_found_in_seven_deaths(rig: Rig, poison_at: int) -> None:
    ids = rig.add(*[b"x"] * 100)
    done: list[bytes] = []

    deaths = find_poison(rig, ids[poison_at], done)

    assert deaths == [100, 50, 25, 12, 6, 3, 1]
    rig.assert_sound()
    do_the_rest(rig, ids[poison_at], done)
    assert sorted(done) == [*ids[:poison_at], *ids[poison_at + 1 :]]
    rig.assert_sound()


@pytest.mark.parametrize("poison_at", [*range(0, 100, 6), 97, 98, 99])
def test_poison_item_anywhere_is_found_in_no_more_deaths_and_all_others_get_done(
    poison_at: int,
) -> None:
    """The last of an odd number may be alone, and found, even sooner."""
    rig = Rig()
    try:
        ids = rig.add(*[b"x"] * 100)
        done: list[bytes] = []

        deaths = find_poison(rig, ids[poison_at], done)
        do_the_rest(rig, ids[poison_at], done)

        assert deaths[0] == 100
        assert deaths[-1] == 1
        assert len(deaths) <= 7
        assert all(after <= before // 2 for before, after in pairwise(deaths))
        assert sorted(done) == [*ids[:poison_at], *ids[poison_at + 1 :]]
        assert rig.stats().died_total == 0
        rig.assert_sound()
    finally:
        rig.close()
