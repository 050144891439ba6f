"""The bytes of what items wait for."""

import struct

import pytest

from queueber.db.records.waits import (
    WAITED_FOR_KEY_BYTES,
    Wait,
    batch_note,
    batch_what,
    decode_wait,
    encode_wait,
    item_what,
    items_note,
    noted_range,
    split_waited_for,
    split_what,
)

FIRST, SECOND, LAST, WAITER = (bytes([n]) * 16 for n in (1, 2, 3, 9))


def test_what_is_waited_for_is_read_as_it_was_written() -> None:
    assert split_what(item_what(FIRST)) == (FIRST, 0)
    assert split_what(batch_what(2**32 - 1)) == (None, 2**32 - 1)
    assert split_waited_for(batch_what(7) + WAITER) == (batch_what(7), WAITER)
    wait = Wait(5, (item_what(FIRST), batch_what(7)))
    assert decode_wait(encode_wait(*wait)) == wait


def test_a_note_is_about_the_entries_of_its_items_or_batch() -> None:
    start, end = noted_range(items_note(FIRST, LAST))
    for item in (FIRST, SECOND, LAST):
        assert start <= item_what(item) + WAITER < end
    assert not start <= item_what(b"\4" * 16) + WAITER < end
    start, end = noted_range(batch_note(7))
    assert start <= batch_what(7) + WAITER < end
    assert not start <= batch_what(8) + WAITER < end
    assert len(items_note(FIRST, LAST)) == len(batch_note(7)) == WAITED_FOR_KEY_BYTES


@pytest.mark.parametrize("value", [b"", bytes(8), bytes(8 + 16), bytes(8) + b"\2" + bytes(16)])
def test_bytes_of_no_record_are_refused(value: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        decode_wait(value)
