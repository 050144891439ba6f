"""Record batches of new items: what becomes of their columns, and which row is refused."""

import pyarrow as pa
import pytest

from queueber.errors import InvalidArgument
from queueber.limits import ATTRIBUTES_MAX, PRIORITY_DEFAULT
from queueber.model import Rows
from queueber.tables.new_items import RowLimits, read_rows

LIMITS = RowLimits(item_bytes_max=10, started_at_ms=1000)


def test_columns_become_rows_and_nulls_their_defaults() -> None:
    batch = pa.record_batch(
        {
            "contents": pa.array(["a", "ü"]),
            "key": pa.array(["k", None]),
            "priority": pa.array([None, 9], pa.int8()),
            "delay_ms": pa.array([None, 5], pa.int64()),
            "attributes": pa.array([None, [("a", "b")]], pa.map_(pa.string(), pa.string())),
        }
    )

    assert list(read_rows(batch, 0, LIMITS)) == [
        Rows(
            contents=[b"a", "ü".encode()],
            visible_at_ms=[0, 1005],
            priorities=[PRIORITY_DEFAULT, 9],
            keys=["k", ""],
            attributes=[{}, {"a": "b"}],
        )
    ]


def test_large_contents_come_in_slices() -> None:
    batch = pa.record_batch({"contents": pa.array([b"%d" % n * 4 for n in range(8)])})

    slices = list(read_rows(batch, 0, RowLimits(10, 0, slice_bytes=32)))

    assert len(slices) > 1
    assert [each for rows in slices for each in rows.contents] == batch["contents"].to_pylist()


MANY = [(str(n), "x") for n in range(ATTRIBUTES_MAX + 1)]
TEXT_MAP = pa.map_(pa.string(), pa.string())


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("contents", pa.array(["a", None]), "none; every item has contents"),
        ("contents", pa.array(["a", "a" * 11]), "11 bytes; the limit is 10"),
        ("priority", pa.array([5, 10]), "10; it must be 0 to 9"),
        ("attributes", pa.array([[], MANY], TEXT_MAP), "33; the limit is 32"),
        ("attributes", pa.array([[], [("a", None)]], TEXT_MAP), "'a' without a value"),
    ],
)
def test_row_that_cannot_be_stored_is_named(column: str, values: pa.Array, words: str) -> None:
    batch = pa.record_batch({"contents": pa.array(["a", "b"]), **{column: values}})

    with pytest.raises(
        InvalidArgument, match=f"column '{column}': row 8 of its partition has {words}"
    ):
        list(read_rows(batch, 7, LIMITS))
