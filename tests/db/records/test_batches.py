"""Batches: bytes that must not change (golden since format 3), any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.batches import BatchRecord, batch_number_part, decode_batch, encode_batch

numbers = st.integers(0, (1 << 64) - 1)
digests = st.integers(0, (1 << 128) - 1)
texts = st.text(max_size=100)
NOW_MS = 1_700_000_000_000
GOLDEN_BATCH = bytes.fromhex(
    "0000000000000006 0000000000000003 0000000000000001"  # added, done, dead
    "00000000000000000000000000000abc"
    "00000000000000000000000000000def"
    "f0000000000000000000000000000001"
    "0000018bcfe56800 0000018bcfe56801 0000000000000003"  # changed-at, forget-at, loads
    "6ec3a4"
)


def test_batch_has_its_golden_bytes() -> None:
    record = BatchRecord("nä", 6, 3, 1, 0xABC, 0xDEF, (15 << 124) + 1, NOW_MS, NOW_MS + 1, 3)

    assert encode_batch(record) == GOLDEN_BATCH
    assert decode_batch(GOLDEN_BATCH) == record
    assert record.live == 2
    assert batch_number_part(0x01020304) == bytes.fromhex("01020304")


@given(
    record=st.builds(
        BatchRecord,
        name=texts,
        added=numbers,
        done=numbers,
        dead=numbers,
        added_digest=digests,
        done_digest=digests,
        dead_digest=digests,
        changed_at_ms=numbers,
        forget_at_ms=numbers,
        loads=numbers,
    )
)
def test_batch_round_trips(record: BatchRecord) -> None:
    assert decode_batch(encode_batch(record)) == record


@pytest.mark.parametrize("size", [0, 95])
def test_batch_cut_short_is_refused(size: int) -> None:
    with pytest.raises(Exception, match="at least 96 bytes"):
        decode_batch(GOLDEN_BATCH[:size])
