"""The bytes of what items wait for."""

import struct

import pytest

from queueber.db.records.waits import (
    DEAD,
    DONE,
    NOTE_KEY_BYTES,
    NOTES,
    WAITED_FOR_KEY_BYTES,
    Note,
    Wait,
    batch_what,
    decode_note,
    decode_wait,
    encode_note,
    encode_wait,
    item_what,
    note_key,
    note_number,
    split_waited_for,
    split_what,
)

FIRST, SECOND, LAST, WAITER, LATER = (bytes([n]) * 16 for n in (1, 2, 3, 9, 10))


def test_what_is_waited_for_is_read_as_it_was_written() -> None:
    assert split_what(item_what(FIRST)) == (FIRST, 0)
    assert split_what(batch_what(2**32 - 1)) == (None, 2**32 - 1)
    assert split_waited_for(batch_what(7) + WAITER) == (batch_what(7), WAITER)
    wait = Wait(5, (item_what(FIRST), batch_what(7)))
    assert decode_wait(encode_wait(*wait)) == wait


def test_a_note_is_about_those_who_waited_for_its_items_or_batch_at_that_time() -> None:
    note = Note(DONE, item_what(FIRST), item_what(LAST), WAITER)
    for item in (FIRST, SECOND, LAST):
        assert note.is_about(item_what(item), WAITER)
        assert not note.is_about(item_what(item), LATER)
    assert not note.is_about(item_what(b"\4" * 16), WAITER)
    note = Note(DEAD, batch_what(7), batch_what(7), WAITER)
    assert note.is_about(batch_what(7), WAITER)
    assert not note.is_about(batch_what(8), WAITER)


def test_notes_are_in_the_order_of_their_numbers_behind_those_who_wait() -> None:
    notes = [note_key(number) for number in (1, 2, 256, 2**40)]
    assert notes == sorted(notes)
    assert batch_what(2**32 - 1) + b"\xff" * 16 < notes[0]
    assert [note_number(key) for key in notes] == [1, 2, 256, 2**40]
    assert {len(key) for key in notes} == {NOTE_KEY_BYTES}
    assert len(batch_what(7) + WAITER) == WAITED_FOR_KEY_BYTES
    for note in (
        Note(DONE, item_what(FIRST), item_what(LAST), WAITER),
        Note(DEAD, batch_what(7), batch_what(7), WAITER),
    ):
        assert decode_note(encode_note(note)) == note


def test_bytes_of_no_note_are_refused() -> None:
    good = Note(DONE, item_what(FIRST), item_what(LAST), WAITER)
    for wrong in (
        b"",
        encode_note(good) + b"x",
        encode_note(good._replace(outcome=b"\2")),
        encode_note(good._replace(last=batch_what(7))),
        encode_note(good._replace(first=NOTES + FIRST, last=NOTES + LAST)),
    ):
        with pytest.raises((ValueError, struct.error)):
            decode_note(wrong)
    for key in (b"", NOTES + bytes(7), b"\1" + bytes(8), NOTES + bytes(32)):
        with pytest.raises(ValueError, match="is not the key of a note"):
            note_number(key)


@pytest.mark.parametrize("value", [b"", bytes(8), bytes(8 + 16), bytes(8) + b"\2" + bytes(16)])
def test_bytes_of_no_record_are_refused(value: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        decode_wait(value)
