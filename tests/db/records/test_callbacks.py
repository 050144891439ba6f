"""The bytes of callbacks."""

from dataclasses import replace

from queueber.db.records.callbacks import (
    AFTER_DUE,
    DUE,
    CallbackRecord,
    callback_digest,
    callback_key,
    decode_callback,
    due_key,
    encode_callback,
    number_of,
)
from queueber.model import NO_OPTIONS, Callback, ItemOptions
from queueber.schema import storage

CALLBACK = Callback("reports", b"\0x", "k", 9, {"a": "", "ö": "b"})


def test_keys_have_the_number_of_the_batch() -> None:
    assert callback_key(7) == b"\0\0\0\0\7"
    assert due_key(7) == b"\1\0\0\0\7"
    assert number_of(callback_key(7)) == number_of(due_key(7)) == 7
    assert callback_key(2**32 - 1) < DUE < due_key(0) < due_key(2**32 - 1) < AFTER_DUE


def test_record_is_read_as_it_was_written() -> None:
    record = CallbackRecord(CALLBACK, 2**40, callback_digest(CALLBACK), bytes(range(16)))

    assert decode_callback(encode_callback(record)) == record


def test_digest_tells_callbacks_apart_and_knows_no_order_of_attributes() -> None:
    others = [
        replace(CALLBACK, to="report"),
        replace(CALLBACK, contents=b"x"),
        replace(CALLBACK, key=""),
        replace(CALLBACK, priority=8),
        replace(CALLBACK, attributes={"ö": "b"}),
        replace(CALLBACK, options=ItemOptions(0)),
    ]
    turned = replace(CALLBACK, attributes={"ö": "b", "a": ""})

    assert callback_digest(turned) == callback_digest(CALLBACK)
    assert len({callback_digest(each) for each in [CALLBACK, *others]}) == 7


def test_what_the_item_has_of_its_own_is_kept_and_may_be_missing() -> None:
    callback = replace(CALLBACK, options=ItemOptions(0, (1, 2**40), 3, 4))
    earlier = storage.CallbackRecord.new_message(to="reports").to_bytes()

    assert decode_callback(encode_callback(CallbackRecord(callback, 1, b"d"))).callback == callback
    assert decode_callback(earlier).callback.options == NO_OPTIONS


def test_digest_of_a_callback_that_was_stored_before_there_were_options_is_the_same() -> None:
    assert callback_digest(CALLBACK).hex() == "1d15ebc83ac9b84d47df5253feac4f80"
