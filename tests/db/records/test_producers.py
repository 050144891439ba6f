"""Producers and answers: bytes that must not change (golden since format 2), any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.producers import (
    Answer,
    ProducerHead,
    decode_answer,
    decode_producer,
    encode_answer,
    encode_producer,
)
from queueber.limits import ADD_ITEMS_MAX

numbers = st.integers(0, (1 << 64) - 1)
ids = st.binary(min_size=16, max_size=16)
NOW_MS = 1_700_000_000_000
ID_1 = bytes.fromhex("018bcfe568007abc9234567890abcdef")
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
