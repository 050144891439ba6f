"""Record batches of new messages: the calls that they become, and which row is refused."""

import pyarrow as pa
import pytest

from queueber.errors import InvalidArgument
from queueber.model import NewMessages
from queueber.tables.new_messages import CALL_BYTES, CALL_ROWS, read_messages

TEXT_MAP = pa.map_(pa.string(), pa.string())


def test_columns_become_messages_and_nulls_their_defaults() -> None:
    batch = pa.record_batch(
        {
            "value": pa.array(["a", "ü"]),
            "key": pa.array(["k", None]),
            "attributes": pa.array([None, [("a", "b")]], TEXT_MAP),
        }
    )

    assert list(read_messages(batch, 4)) == [
        (None, NewMessages([b"a", "ü".encode()], ["k", ""], [{}, {"a": "b"}]), range(4, 6))
    ]


def test_rows_that_name_a_partition_are_a_call_to_it() -> None:
    batch = pa.record_batch(
        {
            "payload": pa.array([b"a", b"b", b"c", b"d"]),
            "key": pa.array(["1", "2", "3", "4"]),
            "partition": pa.array([1, None, 1, 0], pa.int32()),
        }
    )

    assert list(read_messages(batch, 4)) == [
        (1, NewMessages([b"a", b"c"], ["1", "3"]), [4, 6]),
        (None, NewMessages([b"b"], ["2"]), [5]),
        (0, NewMessages([b"d"], ["4"]), [7]),
    ]


@pytest.mark.parametrize(
    "payloads",
    [[b"%d" % n for n in range(3 * CALL_ROWS)], [b"x" * (CALL_BYTES // 3)] * 7],
    ids=["many", "large"],
)
def test_calls_are_bounded_and_have_every_row_in_order(payloads: list[bytes]) -> None:
    batch = pa.record_batch({"payload": pa.array(payloads)})

    calls = [list(messages.payloads) for _, messages, _ in read_messages(batch, 0)]

    assert [each for call in calls for each in call] == payloads
    assert max(map(len, calls)) <= CALL_ROWS
    assert max(sum(map(len, call)) for call in calls) <= CALL_BYTES
    assert len(calls) > 1


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("payload", pa.array(["a", None]), "none; every message has a payload"),
        ("key", pa.array(["a", "k" * 513]), "513 bytes; the limit is 512"),
        ("partition", pa.array([5, 256]), "256; it must be 0 to 255"),
        ("partition", pa.array([5, -1]), "-1; it must be 0 to 255"),
        ("attributes", pa.array([[], [("a", None)]], TEXT_MAP), "'a' without a value"),
    ],
)
def test_row_that_cannot_be_published_is_named(column: str, values: pa.Array, words: str) -> None:
    batch = pa.record_batch({"payload": pa.array(["a", "b"]), **{column: values}})

    with pytest.raises(
        InvalidArgument, match=f"column '{column}': row 8 of its partition has {words}"
    ):
        list(read_messages(batch, 7))
