"""Rows of results: bytes that must not change."""

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.log import decode_result, encode_result, is_of_batch, result_head

ID = bytes.fromhex("018bcfe568007abc9234567890abcdef")
ATTRIBUTES = bytes.fromhex("0001 61 0000")

GOLDEN_PLAIN = ID + bytes.fromhex("0001 0000 0000 0000") + b"done"
GOLDEN_ROW = ID + bytes.fromhex("0003 0002 0001 0005") + b"\xc3\xb6" + b"b" + ATTRIBUTES + b"done"
"""Of format 3. Rows of format 2, which was never released, had no attributes."""

ids = st.binary(min_size=16, max_size=16)
texts = st.binary(max_size=50)


def test_rows_have_their_golden_bytes() -> None:
    row = encode_result(ID, b"done", attempt=3, key="ö".encode(), batch=b"b", attributes=ATTRIBUTES)

    assert ID + result_head(1, b"", b"", b"") + b"done" == GOLDEN_PLAIN
    assert row == GOLDEN_ROW
    assert decode_result(GOLDEN_PLAIN) == (ID, 1, b"", b"", b"", b"done")
    assert decode_result(GOLDEN_ROW) == (ID, 3, "ö".encode(), b"b", ATTRIBUTES, b"done")


@given(
    item_id=ids,
    result=st.binary(),
    attempt=st.integers(1, 1000),
    key=texts,
    batch=texts,
    attributes=texts,
)
def test_row_round_trips(
    item_id: bytes, result: bytes, attempt: int, key: bytes, batch: bytes, attributes: bytes
) -> None:
    row = encode_result(
        item_id, result, attempt=attempt, key=key, batch=batch, attributes=attributes
    )

    assert decode_result(row) == (item_id, attempt, key, batch, attributes, result)


@given(item_id=ids, result=st.binary())
def test_plain_row_is_that_of_a_first_attempt_without_details(
    item_id: bytes, result: bytes
) -> None:
    general = encode_result(item_id, result, attempt=1, key=b"", batch=b"", attributes=b"")

    assert item_id + result_head(1, b"", b"", b"") + result == general


@given(key=texts, batch=texts, asked=texts, rest=texts)
def test_row_knows_its_batch_from_all_others(
    key: bytes, batch: bytes, asked: bytes, rest: bytes
) -> None:
    row = encode_result(ID, rest, attempt=1, key=key, batch=batch, attributes=rest)

    assert is_of_batch(row, batch)
    assert is_of_batch(row, asked) == (asked == batch)
    assert not is_of_batch(row, batch + b"x")
