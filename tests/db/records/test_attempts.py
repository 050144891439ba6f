"""The histories of items that failed: what is kept, and what was written before."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.attempts import (
    NO_HISTORY,
    Failed,
    History,
    decode_attempts,
    encode_attempts,
)
from queueber.limits import ATTEMPTS_CEILING, EARLIER_ERROR_BYTES_MAX, EARLIER_ERRORS_MAX
from queueber.model import AttemptEnd

NOW_MS = 1_700_000_000_000
GOLDEN = bytes.fromhex("8002 0000018bcfe56800 0000018bcfe56801 01 03 0002 c3b6 01 21")
GOLDEN_BEFORE = bytes.fromhex("0002 0000018bcfe56800 0000018bcfe56801 c3b6 21")
"""As it was when only the last error was kept."""

times = st.integers(0, (1 << 64) - 1)
failures = st.builds(Failed, st.sampled_from([None, *AttemptEnd]), st.text(max_size=60))


def test_histories_have_their_golden_bytes() -> None:
    last = [Failed(AttemptEnd.DISCONNECTED, "ö"), Failed(AttemptEnd.FAILED, "!")]
    history = History([NOW_MS, NOW_MS + 1], last)

    assert encode_attempts(history) == GOLDEN
    assert decode_attempts(GOLDEN) == history
    assert history.last_error == "!"


def test_history_from_before_has_the_last_error_and_no_end() -> None:
    before = decode_attempts(GOLDEN_BEFORE)

    assert before == History([NOW_MS, NOW_MS + 1], [Failed(None, "ö!")])
    assert decode_attempts(bytes(2)) == NO_HISTORY
    again = before.failed_again(NOW_MS + 2, Failed(AttemptEnd.EXPIRED, "late"), 1000)
    assert decode_attempts(encode_attempts(again)) == History(
        [NOW_MS, NOW_MS + 1, NOW_MS + 2],
        [Failed(None, "ö!"), Failed(AttemptEnd.EXPIRED, "late")],
    )


@given(
    times_ms=st.lists(times, min_size=1, max_size=30),
    last=st.lists(failures, min_size=1, max_size=20),
)
def test_histories_round_trip(times_ms: list[int], last: list[Failed]) -> None:
    history = History(times_ms, last)

    assert decode_attempts(encode_attempts(history)) == history


@given(errors=st.lists(st.text(max_size=400), min_size=1, max_size=30))
def test_last_error_is_kept_whole_and_those_before_it_are_cut_and_bounded(
    errors: list[str],
) -> None:
    history = NO_HISTORY
    for at, error in enumerate(errors):
        history = history.failed_again(at, Failed(AttemptEnd.FAILED, error), 25)

    assert history.times_ms == list(range(len(errors)))[-25:]
    assert history.last_error == errors[-1]
    kept = errors[-EARLIER_ERRORS_MAX - 1 :]
    assert len(history.last) == len(kept)
    for failed, error in zip(history.last[:-1], kept[:-1], strict=True):
        assert len(failed.error.encode()) <= EARLIER_ERROR_BYTES_MAX
        assert error.startswith(failed.error.removesuffix(" ..."))
        is_cut = failed.error != error
        assert is_cut == (len(error.encode()) > EARLIER_ERROR_BYTES_MAX)


def test_as_many_attempts_as_a_queue_may_allow_round_trip() -> None:
    times_ms = [NOW_MS + n for n in range(ATTEMPTS_CEILING)]
    history = History(times_ms, [Failed(AttemptEnd.FAILED, "")])

    assert decode_attempts(encode_attempts(history)) == history


@pytest.mark.parametrize("size", range(2, len(GOLDEN) - 1))
def test_damaged_history_is_refused_or_shorter(size: int) -> None:
    with pytest.raises((ValueError, struct.error)):
        decode_attempts(GOLDEN[:size])
