"""Dedup keys, producers and batches: bytes that must not change (golden), any size."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.remembered import (
    DIGEST_MODULUS,
    Answer,
    BatchRecord,
    ProducerHead,
    batch_number_part,
    decode_answer,
    decode_batch,
    decode_key_entry,
    decode_producer,
    encode_answer,
    encode_batch,
    encode_key_entry,
    encode_producer,
    ids_digest,
)
from queueber.limits import ADD_ITEMS_MAX

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


ID_2 = bytes.fromhex("018bcfe568007abc9234567890abcdf0")
GOLDEN_PRODUCER = bytes.fromhex(
    "0000000000000001 0000000000000002 0000018bcfe56800 0000018bcfe56801"
)
GOLDEN_ANSWER = bytes.fromhex("00000002 deadbeef") + ID_1 + ID_2 + bytes.fromhex("00 01")
GOLDEN_ANSWER_WITHOUT_DUPLICATES = bytes.fromhex("00000001 00000007") + ID_1


def test_producer_has_its_golden_bytes() -> None:
    head = ProducerHead(epoch=1, sequence=2, seen_at_ms=NOW_MS, forget_at_ms=NOW_MS + 1)

    assert encode_producer(head) == GOLDEN_PRODUCER
    assert decode_producer(GOLDEN_PRODUCER) == head


def test_answer_has_its_golden_bytes() -> None:
    answer = Answer(0xDEADBEEF, [ID_1, ID_2], [False, True])
    without_duplicates = Answer(7, [ID_1], [])

    assert encode_answer(answer) == GOLDEN_ANSWER
    assert decode_answer(GOLDEN_ANSWER) == answer
    assert encode_answer(without_duplicates) == GOLDEN_ANSWER_WITHOUT_DUPLICATES
    assert decode_answer(GOLDEN_ANSWER_WITHOUT_DUPLICATES) == without_duplicates


@given(head=st.builds(ProducerHead, numbers, numbers, numbers, numbers))
def test_producer_round_trips(head: ProducerHead) -> None:
    assert decode_producer(encode_producer(head)) == head


@given(
    rows=st.lists(st.tuples(ids, st.booleans()), max_size=10),
    tells=st.booleans(),
    checksum=st.integers(0, (1 << 32) - 1),
)
def test_answer_round_trips(rows: list[tuple[bytes, bool]], tells: bool, checksum: int) -> None:
    given_ids = [item_id for item_id, _ in rows]
    answer = Answer(checksum, given_ids, [each for _, each in rows] if tells else [])

    assert decode_answer(encode_answer(answer)) == answer


def test_answer_of_the_largest_add_round_trips() -> None:
    given_ids = [n.to_bytes(16) for n in range(ADD_ITEMS_MAX)]
    answer = Answer(1, given_ids, [n % 3 == 0 for n in range(ADD_ITEMS_MAX)])

    assert decode_answer(encode_answer(answer)) == answer


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0\0",
        GOLDEN_ANSWER[:-1],
        GOLDEN_ANSWER[:24],
        b"\0\0\0\5" + bytes(4) + ID_1,
        GOLDEN_ANSWER + b"\0",
    ],
    ids=["nothing", "half a count", "a flag short", "an id short", "four ids short", "a flag long"],
)
def test_answer_that_does_not_fit_its_count_is_refused(value: bytes) -> None:
    """Else a damaged count makes billions of ids."""
    with pytest.raises(ValueError, match="answer"):
        decode_answer(value)


# --- digests of ids -------------------------------------------------------------------------------

C1, C2, C3 = (
    0x9E3779B97F4A7C15F39CC0605CEDC835,
    0xC2B2AE3D27D4EB4F165667B19E3779F9,
    0xD6E8FEB86659FD93A0761D6478BD642F,
)
GOLDEN_DIGEST = 0x74A4B89710AE58C908CCAA3917E78278

counts = st.integers(0, 600)
lasts = st.integers(1000, (1 << 128) - 1)


def digest_of(numbers: Iterable[int]) -> int:
    """The digest as it is defined, id by id."""
    return sum(C1 * x + C2 * x * x + C3 * x**3 for x in numbers) % DIGEST_MODULUS


@given(last=lasts, count=counts)
def test_ids_digest_of_consecutive_ids_is_the_sum_over_each(last: int, count: int) -> None:
    found = ids_digest(last.to_bytes(16), count)

    assert found == digest_of(range(last - count + 1, last + 1))
    assert 0 <= found < DIGEST_MODULUS < 1 << 128


@given(last=lasts, counts=st.tuples(counts, counts).filter(lambda both: sum(both) < 1000))
def test_ids_digest_is_the_sum_of_those_of_its_parts(last: int, counts: tuple[int, int]) -> None:
    front, rest = counts

    parts = ids_digest((last - rest).to_bytes(16), front) + ids_digest(last.to_bytes(16), rest)

    assert ids_digest(last.to_bytes(16), front + rest) == parts % DIGEST_MODULUS


@given(
    last=lasts,
    count=st.integers(1, 20),
    gone=st.integers(0, 19),
    other=st.integers(0, (1 << 128) - 1),
)
def test_ids_digest_differs_if_one_id_is_another(
    last: int, count: int, gone: int, other: int
) -> None:
    """Also if it is one that the others have among them already."""
    ids = list(range(last - count + 1, last + 1))
    swapped = [*ids]
    swapped[gone % count] = other

    assert (digest_of(swapped) == ids_digest(last.to_bytes(16), count)) == (swapped == ids)


def test_ids_digest_has_its_golden_value() -> None:
    """It is stored with every batch that is under way."""
    assert ids_digest(ID_2, 2) == GOLDEN_DIGEST
    assert ids_digest(ID_2, 0) == 0


# --- batches --------------------------------------------------------------------------------------

digests = st.integers(0, (1 << 128) - 1)
texts = st.text(max_size=100)
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


def test_batch_whose_items_are_all_done_has_its_golden_bytes() -> None:
    record = BatchRecord("nä", 6, 6, 0, 0xABC, 0xABC, 0, NOW_MS, NOW_MS + 1)
    golden = bytes.fromhex(
        "8000000000000006 00000000000000000000000000000abc"  # added, the digest of both
        "0000018bcfe56800 0000018bcfe56801 6ec3a4"
    )

    assert encode_batch(record) == golden
    assert decode_batch(golden) == record


@given(
    record=st.builds(
        BatchRecord,
        name=texts,
        added=st.integers(0, (1 << 63) - 1),  # the highest bit says that all are done
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
