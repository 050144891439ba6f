"""Rows of results: bytes that must not change."""

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.result_rows import PLAIN_RESULT, decode_result, encode_result

ID = bytes.fromhex("018bcfe568007abc9234567890abcdef")

GOLDEN_PLAIN = ID + bytes.fromhex("0001 0000 0000") + b"done"
GOLDEN_ROW = ID + bytes.fromhex("0003 0002 0001") + b"\xc3\xb6" + b"b" + b"done"

ids = st.binary(min_size=16, max_size=16)
texts = st.text(max_size=50)


def test_rows_have_their_golden_bytes() -> None:
    row = encode_result(ID, b"done", attempt=3, key="ö".encode(), batch=b"b")

    assert ID + PLAIN_RESULT + b"done" == GOLDEN_PLAIN
    assert row == GOLDEN_ROW
    assert decode_result(GOLDEN_PLAIN) == (ID, 1, "", "", b"done")
    assert decode_result(GOLDEN_ROW) == (ID, 3, "ö", "b", b"done")


@given(item_id=ids, result=st.binary(), attempt=st.integers(1, 1000), key=texts, batch=texts)
def test_row_round_trips(item_id: bytes, result: bytes, attempt: int, key: str, batch: str) -> None:
    row = encode_result(item_id, result, attempt=attempt, key=key.encode(), batch=batch.encode())

    assert decode_result(row) == (item_id, attempt, key, batch, result)


@given(item_id=ids, result=st.binary())
def test_plain_row_is_that_of_a_first_attempt_without_key_and_batch(
    item_id: bytes, result: bytes
) -> None:
    general = encode_result(item_id, result, attempt=1, key=b"", batch=b"")

    assert item_id + PLAIN_RESULT + result == general
