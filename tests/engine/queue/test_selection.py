"""Choice: the highest priority first, the oldest within one, and nobody starves.

What may go together is in `test_choice_company`.
"""

from queueber.db.families import Family
from queueber.db.records.runs import MarkFields
from queueber.engine.queue.poll import Selection
from queueber.limits import ITEM_WIRE_BYTES, MIB, OLDEST_FIRST_EVERY
from queueber.model import NewItems, Polled
from tests.engine.making import make_quarantined, run_of
from tests.support.operations import run
from tests.support.rig import Rig


def add_priorities(rig: Rig, *priorities: int) -> list[bytes]:
    return list(rig.add_items(NewItems([b"x"] * len(priorities), priorities=priorities)).ids)


# --- priorities -----------------------------------------------------------------------------------


def test_higher_priority_comes_first_and_within_one_the_oldest(rig: Rig) -> None:
    ids = add_priorities(rig, 0, 9, 5, 9, 0, 5)

    polled = rig.poll(10)

    assert polled.ids == [ids[1], ids[3], ids[2], ids[5], ids[0], ids[4]]
    rig.assert_sound()


def test_every_priority_is_a_level_of_its_own(rig: Rig) -> None:
    ids = add_priorities(rig, *range(10))

    assert [list(polled.ids) for polled in rig.poll_many([4, 3])] == [
        ids[:5:-1],
        ids[5:2:-1],
    ]
    rig.assert_sound()


def test_late_item_of_high_priority_overtakes_all_that_waited(rig: Rig) -> None:
    add_priorities(rig, 5, 5)
    rig.now_ms += 1000

    (late,) = add_priorities(rig, 6)

    assert rig.poll().ids == [late]


def test_one_lease_in_so_many_takes_the_oldest_whatever_their_priority(rig: Rig) -> None:
    low = add_priorities(rig, *[0] * 5)
    rig.now_ms += 1
    high = add_priorities(rig, *[9] * 100)

    leases = [rig.poll(2) for _ in range(2 * OLDEST_FIRST_EVERY)]

    turns = [at for at, polled in enumerate(leases, 1) if set(polled.ids) & set(low)]
    assert turns == [OLDEST_FIRST_EVERY, 2 * OLDEST_FIRST_EVERY]
    assert [list(leases[turn - 1].ids) for turn in turns] == [low[:2], low[2:4]]
    taken = [item_id for polled in leases for item_id in polled.ids if item_id in set(high)]
    assert taken == high[: len(taken)]
    rig.assert_sound()


def test_turns_go_on_through_calls_of_several_polls_and_restarts(rig: Rig) -> None:
    low = add_priorities(rig, *[0] * 5)
    rig.now_ms += 1
    add_priorities(rig, *[9] * 40)
    answers: list[Polled] = []
    for counts in ([1] * 3, [1], [1] * 7, [1] * 5):
        answers += rig.poll_many(counts)
        rig.reopen()

    turns = [at for at, polled in enumerate(answers, 1) if polled.ids[0] in low]
    assert turns == [8, 16]
    rig.assert_sound()


def test_low_priority_does_not_starve_under_a_steady_load_of_high(rig: Rig) -> None:
    """More of high priority comes in than is ever polled."""
    low = add_priorities(rig, *[0] * 20)
    waiting = set(low)

    polls = 0
    while waiting:
        rig.now_ms += 1
        add_priorities(rig, 9, 9)
        polls += 1
        waiting -= set(rig.poll(1).ids)

    assert polls == OLDEST_FIRST_EVERY * len(low)
    rig.assert_sound()


def test_oldest_first_merges_all_levels_by_age(rig: Rig) -> None:
    ids = []
    for priority in (3, 9, 0, 9, 3, 5):
        ids += add_priorities(rig, priority)
        rig.now_ms += 1
    rig.queue.counters.leases_total = OLDEST_FIRST_EVERY - 1

    assert rig.poll(10).ids == ids


# --- room -----------------------------------------------------------------------------------------


def test_room_is_not_taken_by_items_that_do_not_go(rig: Rig) -> None:
    """The first poll ends at a suspect; what lies behind it has cost nothing."""
    quarantined = make_quarantined(rig, 2)
    cost = 1 + ITEM_WIRE_BYTES

    answers = rig.poll_many([2, 2], bytes_max=2 * cost)

    assert [list(answer.ids) for answer in answers] == [[each] for each in quarantined]


def test_choice_takes_nothing_out_before_it_is_told_to(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    disk, memory = rig.dump(), rig.memory()
    blocks = rig.queue.blocks.reader()
    selection = Selection(rig.queue, blocks, 3, bytes_max=MIB, holder=None, now_ms=rig.now_ms)

    groups = [selection.take(1), selection.take(1)]

    assert groups == [[run_of(ids[:1], 1, span=3)], [run_of(ids[1:2], 1, at=1, span=3)]]
    assert (rig.dump(), rig.memory()) == (disk, memory), "its transaction has yet to be written"
    run(rig.engine, rig.queue, rig.now_ms, selection.take_out)
    assert rig.runs(Family.VISIBILITY_INDEX) == [run_of(ids[2:], 1, at=2)]
    assert rig.queue.counters.ready == 1


def test_choice_that_took_nothing_changes_nothing(rig: Rig) -> None:
    rig.add(b"a", b"b")
    disk, memory = rig.dump(), rig.memory()
    blocks = rig.queue.blocks.reader()
    selection = Selection(rig.queue, blocks, 2, bytes_max=MIB, holder=None, now_ms=rig.now_ms)

    assert selection.take(0) == []
    run(rig.engine, rig.queue, rig.now_ms, selection.take_out)

    assert (rig.dump(), rig.memory()) == (disk, memory)


def test_choice_joins_what_it_took_of_a_run_in_two_steps(rig: Rig) -> None:
    """The oldest of two levels of one block come in turn; neighbours of one level are one run."""
    ids = list(rig.add_items(NewItems([b"x"] * 4, priorities=[5, 5, 9, 5])).ids)
    blocks = rig.queue.blocks.reader()
    selection = Selection(rig.queue, blocks, 4, bytes_max=MIB, holder=None, now_ms=rig.now_ms)

    assert selection.take(4) == [
        run_of(ids[2:3], 1, MarkFields(priority=9), at=2, span=4),
        run_of(ids[:2], 2, span=4),
        run_of(ids[3:], 1, at=3),
    ]
