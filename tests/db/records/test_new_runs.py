"""New blocks and their runs, of contents as a list or packed."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.blocks import make_blocks
from queueber.db.records.new_runs import new_runs
from queueber.db.records.runs import make_run, new_mark
from queueber.ids import range_id, shifted
from queueber.limits import BLOCK_ITEMS_MAX
from queueber.model import PackedContents, Rows

LAST = range_id(bytes(9), 1, 1000)


@given(
    contents=st.lists(
        st.binary(max_size=5) | st.sampled_from([bytes(20_000), bytes(40_000), bytes(70_000)]),
        max_size=12,
    ),
    before=st.integers(0, 3),
    attributes=st.sampled_from([None, {}, {"a": "b"}]),
    has_keys=st.booleans(),
)
def test_blocks_of_packed_contents_are_those_of_a_list(
    contents: list[bytes], before: int, attributes: Mapping[str, str] | None, has_keys: bool
) -> None:
    packed = PackedContents.pack(contents)[before:]
    contents = contents[before:]
    keys = [f"key {at}" for at in range(len(contents))] if has_keys else ()
    columns = {
        "keys": keys,
        "attributes": () if attributes is None else [attributes] * len(contents),
    }

    listed = list(make_blocks(Rows(contents, **columns)))  # type: ignore[arg-type]
    of_packed = list(make_blocks(Rows(packed, **columns)))  # type: ignore[arg-type]

    assert [block._replace(ends=()) for block in of_packed] == [
        block._replace(ends=()) for block in listed
    ]
    assert [list(block.ends) for block in of_packed] == [list(block.ends) for block in listed]


@pytest.mark.parametrize("count", [1, 2, BLOCK_ITEMS_MAX])
def test_block_of_items_that_have_nothing_of_their_own_is_one_run(count: int) -> None:
    (block,) = make_blocks(Rows([b"abc"] * count))

    mark = new_mark(4, 5, has_details=False)
    assert list(new_runs(LAST, block, (), (), 4)) == [
        (0, make_run(LAST, count, 0, count, 3 * count, mark))
    ]


def test_items_that_follow_each_other_with_one_time_and_priority_are_a_run() -> None:
    rows = Rows([b"x" * size for size in range(1, 7)], keys=["k"] * 6)
    (block,) = make_blocks(rows)

    runs = list(new_runs(LAST, block, [0, 0, 7, 7, 7, 0], [5, 5, 5, 9, 9, 5], 0))

    marks = {p: new_mark(0, p, has_details=True) for p in (5, 9)}
    assert runs == [
        (0, make_run(shifted(LAST, -4), 2, 0, 6, 1 + 2 + 2, marks[5])),
        (7, make_run(shifted(LAST, -3), 1, 2, 6, 3 + 1, marks[5])),
        (7, make_run(shifted(LAST, -1), 2, 3, 6, 4 + 5 + 2, marks[9])),
        (0, make_run(LAST, 1, 5, 6, 6 + 1, marks[5])),
    ]


def test_runs_of_a_later_block_have_their_own_times() -> None:
    rows = Rows([b""] * (BLOCK_ITEMS_MAX + 2))
    _, block = make_blocks(rows)
    times = [1] * BLOCK_ITEMS_MAX + [2, 3]

    runs = list(new_runs(LAST, block, times, (), 0))

    assert [(time, run.count, run.at, run.span) for time, run in runs] == [
        (2, 1, 0, 2),
        (3, 1, 1, 2),
    ]
