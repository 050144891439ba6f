"""Dead letters and failures: bytes that must not change (golden since format 2), any size."""

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.dead_letters import (
    decode_attempts,
    decode_dead,
    encode_attempts,
    encode_dead,
)
from queueber.db.records.marks import plain_mark
from queueber.limits import ATTEMPTS_CEILING

numbers = st.integers(0, (1 << 64) - 1)
texts = st.text(max_size=100)
NOW_MS = 1_700_000_000_000
GOLDEN_DEAD = bytes.fromhex("0000018bcfe56800 02 0000000d 00000000 0000 0000 05 00")
GOLDEN_ATTEMPTS = bytes.fromhex("0002 0000018bcfe56800 0000018bcfe56801 c3b6 21")


def test_dead_has_its_golden_bytes() -> None:
    assert encode_dead(NOW_MS, 2, plain_mark(13)) == GOLDEN_DEAD
    assert decode_dead(GOLDEN_DEAD) == (NOW_MS, 2, plain_mark(13))


def test_attempts_have_their_golden_bytes() -> None:
    assert encode_attempts([NOW_MS, NOW_MS + 1], "ö!") == GOLDEN_ATTEMPTS
    assert decode_attempts(GOLDEN_ATTEMPTS) == ([NOW_MS, NOW_MS + 1], "ö!")


@given(died_at_ms=numbers, reason=st.integers(0, 255), mark=st.binary(min_size=14, max_size=14))
def test_dead_round_trips(died_at_ms: int, reason: int, mark: bytes) -> None:
    assert decode_dead(encode_dead(died_at_ms, reason, mark)) == (died_at_ms, reason, mark)


@given(times_ms=st.lists(numbers, max_size=20), error=texts)
def test_attempts_round_trip(times_ms: list[int], error: str) -> None:
    assert decode_attempts(encode_attempts(times_ms, error)) == (times_ms, error)


def test_as_many_attempts_as_a_queue_may_allow_round_trip() -> None:
    times_ms = [NOW_MS + n for n in range(ATTEMPTS_CEILING)]

    assert decode_attempts(encode_attempts(times_ms, "")) == (times_ms, "")
