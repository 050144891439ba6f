"""Messages are the same however the frames cut them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.gateway.grpc.http2.messages import (
    CompressedMessage,
    LargeMessage,
    Messages,
    prefix,
)


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 30), min_size=1))
def test_messages_come_whole_and_in_order(sent: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(prefix(len(each)) + each for each in sent)
    found, at, turn = Messages(1000), 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found.add(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert list(found.whole) == sent
    assert found.is_between


def test_a_message_without_its_end_is_not_there() -> None:
    found = Messages(1000)
    found.add(prefix(3) + b"ab")
    assert (list(found.whole), found.is_between) == ([], False)


@pytest.mark.parametrize("size", [1, 5, 9])
def test_what_is_not_taken_is_known_from_its_first_bytes(size: int) -> None:
    with pytest.raises(LargeMessage, match="1001"):
        _add_in_pieces(Messages(1000), prefix(1001) + b"abcd", size)
    with pytest.raises(CompressedMessage):
        _add_in_pieces(Messages(1000), b"\1\0\0\0\4abcd", size)


def _add_in_pieces(messages: Messages, data: bytes, size: int) -> None:
    for at in range(0, len(data), size):
        messages.add(data[at : at + size])
