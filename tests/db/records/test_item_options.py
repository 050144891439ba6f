"""The options of an item: what is stored is read back, in bytes that do not change."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.item_options import StoredOptions, decode_options, encode_options
from queueber.limits import ATTEMPTS_CEILING, DELAY_MS_MAX, ITEM_BACKOFF_STEPS_MAX

options = st.builds(
    StoredOptions,
    st.none() | st.integers(0, ATTEMPTS_CEILING),
    st.lists(st.integers(0, DELAY_MS_MAX), max_size=ITEM_BACKOFF_STEPS_MAX).map(tuple),
    st.integers(0, DELAY_MS_MAX),
    st.integers(0, 1 << 62),
)


@given(options)
def test_options_are_read_as_they_were_written(options: StoredOptions) -> None:
    assert decode_options(encode_options(options)) == options


def test_the_bytes_of_options() -> None:
    encoded = encode_options(StoredOptions(3, (1, 256), 30_000, 1 << 40))

    assert encoded.hex(" ", -8) == (
        "0004000200000000 0000753000000100 0000000000000000 0000000100000000 00000100"
    )


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\0\1", bytes(5)])
def test_damaged_options_are_noticed(value: bytes) -> None:
    with pytest.raises(struct.error):
        decode_options(value)
