"""Dedup keys: bytes that must not change (golden since format 2), any value."""

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.dedup_keys import decode_key_entry, encode_key_entry

numbers = st.integers(0, (1 << 64) - 1)
ids = st.binary(min_size=16, max_size=16)
NOW_MS = 1_700_000_000_000
ID_1 = bytes.fromhex("018bcfe568007abc9234567890abcdef")
GOLDEN_KEY = ID_1 + bytes.fromhex("0000018bcfe56800")


def test_key_entry_has_its_golden_bytes() -> None:
    assert encode_key_entry(ID_1, NOW_MS) == GOLDEN_KEY
    assert decode_key_entry(GOLDEN_KEY) == (ID_1, NOW_MS)


@given(item_id=ids, forget_at_ms=numbers)
def test_key_entry_round_trips(item_id: bytes, forget_at_ms: int) -> None:
    assert decode_key_entry(encode_key_entry(item_id, forget_at_ms)) == (item_id, forget_at_ms)
