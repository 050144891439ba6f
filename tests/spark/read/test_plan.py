"""Ranges: every offset is in one, and none is too small to be worth a task."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from queueber.spark.read.plan import ROWS_LEAST, split_offsets


@given(
    first=st.integers(0, 10**12), count=st.integers(0, 50 * ROWS_LEAST), splits=st.integers(1, 40)
)
def test_offsets_are_divided_without_gap_and_in_equal_parts(
    first: int, count: int, splits: int
) -> None:
    parts = split_offsets(first, first + count, splits)

    assert len(parts) <= splits
    assert sum(end - start for start, end in parts) == count
    if parts:
        assert (parts[0][0], parts[-1][1]) == (first, first + count)
        assert all(a[1] == b[0] for a, b in pairwise(parts))
        sizes = [end - start for start, end in parts]
        assert max(sizes) - min(sizes) <= 1
        assert len(parts) == 1 or min(sizes) >= ROWS_LEAST
