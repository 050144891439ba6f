"""Rows of several calls become rows of one, and no value of them is lost or moved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.bulk.joined_rows import join_rows
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX
from queueber.model import PackedContents, Rows, total_size

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """A row as whoever reads it understands it."""

    contents: bytes
    visible_at_ms: int
    priority: int
    key: str
    attributes: Mapping[str, str]


def rows_of(rows: Rows) -> list[Row]:
    """Each row of a call, with the default of each column that the call does not have."""
    count = len(rows.contents)
    columns = zip(
        rows.contents,
        rows.visible_at_ms or [0] * count,
        rows.priorities or [PRIORITY_DEFAULT] * count,
        rows.keys or [""] * count,
        rows.attributes or [{}] * count,
        strict=True,
    )
    return [Row(*values) for values in columns]


def packed_slice(contents: list[bytes]) -> PackedContents:
    """As a batch of Arrow has them: a piece of a longer column."""
    return PackedContents.pack([b"before", *contents, b"after"])[1:-1]


CONTENTS: list[Callable[[list[bytes]], Sequence[bytes]]] = [list, PackedContents.pack, packed_slice]


@st.composite
def calls(draw: st.DrawFn) -> Rows:
    """The rows of one call, with any of the columns."""
    contents = draw(st.lists(st.binary(max_size=4), min_size=1, max_size=5))

    def column(values: st.SearchStrategy[T]) -> Sequence[T]:
        count = len(contents)
        return draw(st.just(()) | st.lists(values, min_size=count, max_size=count))

    return Rows(
        draw(st.sampled_from(CONTENTS))(contents),
        column(st.integers(0, 3)),
        column(st.integers(0, PRIORITY_MAX)),
        column(st.text(max_size=2)),
        column(st.dictionaries(st.text(max_size=1), st.text(max_size=1), max_size=1)),
    )


@given(st.lists(calls(), min_size=1, max_size=4))
def test_joined_rows_are_the_rows_of_all_calls_in_order(given_calls: list[Rows]) -> None:
    joined = join_rows(given_calls)

    assert rows_of(joined) == [row for call in given_calls for row in rows_of(call)]
    assert total_size(joined.contents) == sum(total_size(call.contents) for call in given_calls)


@given(st.lists(calls(), min_size=1, max_size=4))
def test_contents_stay_packed_if_those_of_all_calls_are(given_calls: list[Rows]) -> None:
    joined = join_rows(given_calls)

    are_packed = [isinstance(call.contents, PackedContents) for call in given_calls]
    assert isinstance(joined.contents, PackedContents) == all(are_packed)


@given(st.lists(calls(), min_size=2, max_size=4))
def test_column_that_no_call_has_is_left_out(given_calls: list[Rows]) -> None:
    joined = join_rows(given_calls)

    for name in ("visible_at_ms", "priorities", "keys", "attributes"):
        columns = [getattr(call, name) for call in given_calls]
        assert bool(getattr(joined, name)) == any(map(bool, columns)), name


def test_rows_of_one_call_are_not_copied() -> None:
    rows = Rows([b"one", b"two"], keys=["a", "b"])

    assert join_rows([rows]) is rows


@pytest.mark.parametrize("packing", CONTENTS)
def test_bytes_are_those_of_the_contents(packing: Callable[[list[bytes]], Sequence[bytes]]) -> None:
    assert total_size(packing([b"", b"one", b"three"])) == 8
