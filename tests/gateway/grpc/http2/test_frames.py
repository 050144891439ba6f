"""Frames are written as RFC 9113 has them, and wrong ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.gateway.grpc.http2.frames import (
    HEADERS,
    PADDED,
    PING,
    SETTINGS,
    ConnectionFault,
    StreamFault,
    check_frame,
    check_priority,
    frame,
    settings,
    settings_of,
    without_padding,
)


def test_a_frame_has_nine_bytes_before_what_it_carries() -> None:
    assert frame(HEADERS, 5, 7, b"ab") == b"\0\0\2\1\5\0\0\0\7ab"


@given(st.dictionaries(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF_FFFF)))
def test_settings_are_read_as_they_were_written(pairs: dict[int, int]) -> None:
    assert dict(settings_of(settings(pairs)[9:])) == pairs


@given(st.binary(max_size=50), st.integers(0, 20), st.binary(min_size=5, max_size=5))
def test_padding_and_priorities_are_left_out(body: bytes, pad: int, priority: bytes) -> None:
    padded = bytes([pad]) + body + bytes(pad)
    assert without_padding(PADDED, padded) == body
    assert without_padding(0, body) == body
    assert without_padding(PADDED, bytes([pad]) + priority + body + bytes(pad), 5) == body


@pytest.mark.parametrize("payload", [b"", b"\2a"])
def test_padding_that_is_longer_than_its_frame_ends_the_connection(payload: bytes) -> None:
    with pytest.raises(ConnectionFault):
        without_padding(PADDED, payload)


def test_frames_are_held_to_their_streams_and_sizes() -> None:
    for kind, stream, size in ((PING, 1, 8), (PING, 0, 7), (HEADERS, 0, 1), (SETTINGS, 3, 0)):
        with pytest.raises(ConnectionFault):
            check_frame(kind, stream, size)
    check_frame(PING, 0, 8)
    check_frame(99, 5, 1234)  # a kind that nobody knows
    with pytest.raises(ConnectionFault):
        settings_of(b"12345")
    with pytest.raises(StreamFault):
        check_priority(3, b"\0\0\0\3\0")
