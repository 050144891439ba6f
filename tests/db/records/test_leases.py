"""Leases: byte for byte what Cap'n Proto makes, and readable whoever made them."""

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.leases import (
    WORD,
    decode_lease,
    encode_lease,
    list_pointer,
    padding,
    root_pointer,
    words,
)
from queueber.db.records.runs import Run, encode_held
from queueber.schema import storage
from tests.support.entries import plain_run

sizes = st.integers(0, 1 << 28)
numbers = st.integers(0, (1 << 64) - 1)
ids = st.binary(min_size=16, max_size=16)
held_runs = st.lists(st.builds(plain_run, ids, st.integers(0, 1000)), max_size=20)


@given(size=sizes)
def test_padding_fills_the_last_word(size: int) -> None:
    filled = size + len(padding(size))

    assert filled == words(size) * WORD
    assert 0 <= filled - size < WORD
    assert set(padding(size)) <= {0}


@given(data_words=st.integers(0, 0xFFFF), pointers=st.integers(0, 0xFFFF))
def test_root_pointer_is_a_struct_at_the_very_next_word(data_words: int, pointers: int) -> None:
    encoded = root_pointer(data_words, pointers).to_bytes(8, "little")

    assert struct.unpack("<iHH", encoded) == (0, data_words, pointers)


@given(offset=st.integers(0, (1 << 29) - 1), size=sizes)
def test_list_pointer_is_of_bytes_at_its_offset(offset: int, size: int) -> None:
    low, high = struct.unpack("<iI", list_pointer(offset, size).to_bytes(8, "little"))

    assert (low >> 2, low & 3) == (offset, 1)
    assert (high >> 3, high & 7) == (size, 2)


@given(expires_at_ms=numbers, runs=held_runs)
def test_lease_is_encoded_as_capnp_does(expires_at_ms: int, runs: list[Run]) -> None:
    held = encode_held(runs)
    built = storage.LeaseEntry.new_message(expiresAtMs=expires_at_ms, held=held).to_bytes()

    assert encode_lease(expires_at_ms, held) == built


@given(expires_at_ms=numbers, held=st.binary(max_size=200))
def test_lease_is_read_by_capnp_and_by_us(expires_at_ms: int, held: bytes) -> None:
    """Whatever it holds: the runs are read apart."""
    encoded = encode_lease(expires_at_ms, held)

    assert decode_lease(encoded) == (expires_at_ms, held)
    with storage.LeaseEntry.from_bytes(encoded) as lease:
        assert (lease.expiresAtMs, lease.held) == (expires_at_ms, held)


def in_segments(message: Any) -> bytes:
    """The message as its builder laid it out, in as many segments as it took."""
    encoded: bytes = message.to_bytes()
    return encoded


def segment_count(encoded: bytes) -> int:
    return int.from_bytes(encoded[:4], "little") + 1


def test_lease_of_ten_thousand_runs_in_several_segments_is_understood() -> None:
    held = encode_held([plain_run(n.to_bytes(16), n) for n in range(10_000)])
    message = storage.LeaseEntry.new_message(expiresAtMs=17)
    message.held = held
    encoded = in_segments(message)

    assert segment_count(encoded) > 1
    assert decode_lease(encoded) == (17, held)
    assert decode_lease(encode_lease(17, held)) == (17, held)


def test_lease_with_nothing_set_holds_nothing() -> None:
    assert decode_lease(storage.LeaseEntry.new_message().to_bytes()) == (0, b"")


def test_lease_in_canonical_form_is_understood() -> None:
    """Without its last pointer, which is null."""
    canonical = struct.pack("<II Q Q", 0, 2, 1 << 32, 123)
    with storage.LeaseEntry.from_bytes(canonical) as lease:
        assert (lease.expiresAtMs, lease.held) == (123, b"")

    assert decode_lease(canonical) == (123, b"")


def test_lease_of_a_later_schema_is_understood() -> None:
    """A struct that grew a data word and a pointer still has its fields where they were."""
    held = b"held run"
    later = struct.pack("<II Q QQ QQ", 0, 6, root_pointer(2, 2), 123, 77, list_pointer(1, 8), 0)

    assert decode_lease(later + held) == (123, held)
