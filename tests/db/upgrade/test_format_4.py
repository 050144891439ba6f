"""What format 4 wrote is read as it ever was: the bytes are of a version that wrote them."""

import pytest

from queueber.db.upgrade import format_4
from queueber.db.upgrade.format_4 import Item

MARK = bytes.fromhex("0000000500000007000200030901")
IDS = [bytes(range(16)), bytes(range(16, 32))]
NOW_MS = 1_700_000_000_000

ITEMS = {
    "contents": (
        "00000000030000000000000000000100010000002a00000068656c6c6f000000",
        Item(b"hello", b"", b""),
    ),
    "empty": (
        "000000000200000000000000000001000100000002000000",
        Item(b"", b"", b""),
    ),
    "key and attributes": (
        "00000000070000000000000000000300090000002a000000090000000a000000"
        "090000003200000068656c6c6f0000006b000000000000000001610001620000",
        Item(b"hello", b"k", b"\0\1a\0\1b"),
    ),
    "attributes alone": (
        "0000000005000000000000000000030009000000020000000000000000000000"
        "01000000320000000001610001620000",
        Item(b"", b"", b"\0\1a\0\1b"),
    ),
    "a key alone": (
        "000000000600000000000000000003000900000042000000090000001a000000"
        "000000000000000031323334353637386b65790000000000",
        Item(b"12345678", b"key", b""),
    ),
    "unset pointers": (
        "00000000050000000000000000000300090000002a0000000000000000000000"
        "000000000000000068656c6c6f000000",
        Item(b"hello", b"", b""),
    ),
}

LEASE = bytes.fromhex(
    "000000000b00000000000000010001000068e5cf8b01000001000000e2010000"
    "000102030405060708090a0b0c0d0e0f0000000500000007000200030901"
    "101112131415161718191a1b1c1d1e1f000000050000000700020003090100000000"
)


@pytest.mark.parametrize(("stored", "item"), ITEMS.values(), ids=ITEMS.keys())
def test_item_is_read_from_its_golden_bytes(stored: str, item: Item) -> None:
    assert format_4.read_item(bytes.fromhex(stored)) == item


def test_size_of_an_item_is_that_of_all_its_parts() -> None:
    assert Item(b"hello", b"k", b"\0\1a\0\1b").size == 12


def test_lease_is_read_from_its_golden_bytes() -> None:
    assert format_4.read_lease(LEASE) == (NOW_MS, [(each, MARK) for each in IDS])


@pytest.mark.parametrize(
    "stored",
    [
        "0000000003000000000000000100010005000000000000000100000002000000",
        "0000000003000000000000000100010005000000000000000000000000000000",
    ],
    ids=["an empty list", "unset"],
)
def test_lease_that_holds_nothing_is_read(stored: str) -> None:
    assert format_4.read_lease(bytes.fromhex(stored)) == (5, [])


def test_dead_letter_is_read_from_its_golden_bytes() -> None:
    stored = bytes.fromhex("0000018bcfe56800020000000500000007000200030901")

    assert format_4.read_dead(stored) == (NOW_MS, 2, MARK)
    assert format_4.mark_size(MARK) == 5


def test_digest_of_ids_is_the_sum_of_their_hashes() -> None:
    assert format_4.ids_digest(IDS) == 0xE236A27400DCBB69C379A5E8E9CA69C6
    assert format_4.ids_digest([]) == 0


@pytest.mark.parametrize("size", range(0, 32, 4))
def test_item_cut_short_is_refused(size: int) -> None:
    stored = bytes.fromhex(ITEMS["contents"][0])

    with pytest.raises(ValueError, match="a record "):
        format_4.read_item(stored[:size])


def test_record_of_another_kind_is_refused() -> None:
    several_segments = b"\1\0\0\0" + LEASE[4:]

    with pytest.raises(ValueError, match="not as format 4 wrote it"):
        format_4.read_lease(several_segments)


def test_lease_with_half_an_item_is_refused() -> None:
    held = bytearray(LEASE)
    held[28:32] = (59 << 3 | 2).to_bytes(4, "little")

    with pytest.raises(ValueError, match="59 bytes, which are not whole items"):
        format_4.read_lease(bytes(held))
