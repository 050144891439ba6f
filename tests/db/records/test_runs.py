"""Runs: cut, picked and joined, they stand for the same items as before."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.cutting import cut, join, join_entries, part, pick, singles
from queueber.db.records.keys import TIME_BYTES, due_part
from queueber.db.records.runs import Entry, Run, count_items, entry_at, make_run
from queueber.ids import ItemId, shifted
from tests.support.entries import plain_run
from tests.support.run_model import (
    MARKS,
    SizedBlock,
    block_and_run,
    blocks_and_runs,
    fewest_runs,
    is_one_run,
    items_of,
)

LAST = ItemId(bytes.fromhex("018bcfe568007abc9234567890abcdef"))


@given(drawn=block_and_run())
def test_run_knows_its_items_and_its_block(drawn: tuple[SizedBlock, Run]) -> None:
    block, run = drawn
    items = block.items(run.at, run.at + run.count)

    assert run.ids == [item.item_id for item in items]
    assert (run.first, run.last) == (items[0].item_id, items[-1].item_id)
    assert run.block == block.last
    assert run.is_whole_block == (len(items) == len(block.sizes))
    assert count_items([run, run]) == 2 * len(items)


@given(drawn=block_and_run())
def test_position_of_is_where_the_id_stands_in_the_run(drawn: tuple[SizedBlock, Run]) -> None:
    block, run = drawn
    around = range(-3, len(block.sizes) + 3)

    positions = [run.position_of(block.item_id(at)) for at in around]

    within = range(run.at, run.at + run.count)
    assert positions == [at - run.at if at in within else None for at in around]


@pytest.mark.parametrize("item_id", [bytes(16), b"\xff" * 16, LAST[:7] + b"\0" + LAST[8:]])
def test_position_of_an_id_of_another_add_is_none(item_id: bytes) -> None:
    assert plain_run(LAST, 10, count=5).position_of(item_id) is None


@given(drawn=block_and_run(), data=st.data())
def test_part_has_exactly_the_items_of_its_positions(
    drawn: tuple[SizedBlock, Run], data: st.DataObject
) -> None:
    block, run = drawn
    start = data.draw(st.integers(0, run.count - 1))
    stop = data.draw(st.integers(start + 1, run.count))

    found = part(run, start, stop, block)

    assert found == block.run(run.at + start, run.at + stop, run.mark)
    assert items_of([found], [block]) == items_of([run], [block])[start:stop]


@given(drawn=block_and_run().filter(lambda drawn: drawn[1].count > 1), data=st.data())
def test_cut_gives_the_first_items_and_the_others_and_join_undoes_it(
    drawn: tuple[SizedBlock, Run], data: st.DataObject
) -> None:
    block, run = drawn
    count = data.draw(st.integers(1, run.count - 1))

    front, rest = cut(run, count, block)

    items = items_of([run], [block])
    assert items_of([front], [block]) == items[:count]
    assert items_of([rest], [block]) == items[count:]
    assert (rest.last, front.size + rest.size) == (run.last, run.size)
    assert join([front, rest]) == [run]


@given(drawn=block_and_run(), data=st.data())
def test_pick_takes_exactly_the_positions_and_leaves_the_others(
    drawn: tuple[SizedBlock, Run], data: st.DataObject
) -> None:
    block, run = drawn
    are_picked = data.draw(st.lists(st.booleans(), min_size=run.count, max_size=run.count))
    positions = [at for at, is_picked in enumerate(are_picked) if is_picked]

    picked, left = pick(run, positions, block)

    items = items_of([run], [block])
    assert items_of(picked, [block]) == [items[at] for at in positions]
    assert items_of(left, [block]) == [item for at, item in enumerate(items) if at not in positions]
    assert (join(picked), join(left)) == (picked, left)
    assert join(sorted(picked + left, key=lambda each: each.at)) == [run]


@given(drawn=block_and_run())
def test_pick_of_all_or_none_keeps_the_run_as_it_is(drawn: tuple[SizedBlock, Run]) -> None:
    block, run = drawn

    assert pick(run, range(run.count), block) == ([run], [])
    assert pick(run, [], block) == ([], [run])


@given(drawn=block_and_run())
def test_singles_are_runs_of_one_and_join_undoes_them(drawn: tuple[SizedBlock, Run]) -> None:
    block, run = drawn

    found = singles(run, block)

    assert {each.count for each in found} == {1}
    assert items_of(found, [block]) == items_of([run], [block])
    assert join(found) == [run]


@given(drawn=blocks_and_runs())
def test_join_makes_as_few_runs_as_can_be(drawn: tuple[list[SizedBlock], list[Run]]) -> None:
    blocks, runs = drawn
    items = items_of(runs, blocks)

    joined = join(runs)

    assert [items_of([run], blocks) for run in joined] == fewest_runs(items)


@given(drawn=blocks_and_runs(), data=st.data())
def test_join_in_any_order_keeps_the_items_and_the_order(
    drawn: tuple[list[SizedBlock], list[Run]], data: st.DataObject
) -> None:
    blocks, runs = drawn
    mixed = data.draw(st.permutations(runs))

    joined = join(mixed)

    assert items_of(joined, blocks) == items_of(mixed, blocks)
    ends = [(items_of([a], blocks)[-1], items_of([b], blocks)[0]) for a, b in pairwise(joined)]
    assert not any(is_one_run(a, b) for a, b in ends)


def test_join_leaves_runs_apart_that_differ_in_block_or_mark_or_have_a_gap() -> None:
    run = plain_run(LAST, 10, count=2, at=2, span=9)
    after = plain_run(shifted(LAST, 2), 10, count=2, at=4, span=9)

    apart = [
        after._replace(mark=MARKS[1]),
        plain_run(shifted(LAST, 3), 10, count=2, at=4, span=9),
        plain_run(shifted(LAST, 2), 10, count=2, at=5, span=9),
        plain_run(shifted(LAST, 2), 10, count=2, at=0, span=9),
        plain_run(shifted(LAST, 2), 10, count=2, at=4, span=10),
    ]

    assert [len(join([run, other])) for other in apart] == [2] * len(apart)
    assert join([run, after]) == [make_run(after.last, 4, 2, 9, 20, run.mark)]
    assert join([after, run]) == [after, run]
    assert join([]) == []


@given(drawn=blocks_and_runs(), data=st.data())
def test_join_entries_sorts_and_joins_within_each_time_only(
    drawn: tuple[list[SizedBlock], list[Run]], data: st.DataObject
) -> None:
    blocks, runs = drawn
    times_ms = st.integers(0, 2)
    timed = [(data.draw(times_ms), run) for run in runs]
    entries = data.draw(st.permutations([entry_at(at_ms, run) for at_ms, run in timed]))

    joined = join_entries(entries)

    assert joined == sorted(joined)
    assert [due for due, _ in joined] == [
        due_part(int.from_bytes(due[:TIME_BYTES]), run.last) for due, run in joined
    ]
    for at_ms in range(3):
        items = items_of([run for time, run in timed if time == at_ms], blocks)
        assert [items_of([run], blocks) for run in runs_at(joined, at_ms)] == fewest_runs(items)


def runs_at(entries: list[Entry], at_ms: int) -> list[Run]:
    return [run for due, run in entries if int.from_bytes(due[:TIME_BYTES]) == at_ms]
