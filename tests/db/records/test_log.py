"""The records of a log: bytes that must not change, and rows cut out at any place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.log import (
    LogHead,
    block_bytes,
    block_key,
    decode_block,
    decode_log_head,
    decode_offset,
    encode_block,
    encode_log_head,
    encode_offset,
    encode_rows,
    reader_key,
    split_block_key,
    split_reader_key,
)

PREFIX = b"\0\0\0\7"
LARGE = 1 << 40

numbers = st.integers(0, (1 << 64) - 1)
rows_of_any_kind = st.lists(st.binary(max_size=20), min_size=1, max_size=12)

# --- bytes that are on disks ----------------------------------------------------------------------

GOLDEN_HEAD = bytes.fromhex(
    "0000000000000001 0000000000000203 0000000000000004 0000000000050607"
    "0000018bcfe56800 0000018bcfe56801 000000000000000a 0000000000000b0c"
)
GOLDEN_BLOCK = bytes.fromhex(
    "0000000000000100 0000018bcfe56800 0000000000abcdef"  # first offset, appended-at, position
    "00000002 00000002 00000005"  # where the rows end
    "6869 796f75"
)


def test_head_has_its_golden_bytes() -> None:
    head = LogHead(1, 0x203, 4, 0x50607, 1_700_000_000_000, 1_700_000_000_001, 10, 0xB0C)

    assert encode_log_head(head) == GOLDEN_HEAD
    assert decode_log_head(GOLDEN_HEAD) == head
    assert head.kept_bytes == 0x50607 - 4


def test_block_has_its_golden_key_and_bytes() -> None:
    encoded = encode_block(
        encode_rows([b"hi", b"", b"you"]),
        first_offset=0x100,
        appended_at_ms=1_700_000_000_000,
        position=0xABCDEF,
    )

    assert encoded == GOLDEN_BLOCK
    key = block_key(PREFIX, 0x102)
    assert key == bytes.fromhex("00000007 0000000000000102")
    block = decode_block(key, GOLDEN_BLOCK)
    assert (block.first_offset, block.end_offset) == (0x100, 0x103)
    assert (block.appended_at_ms, block.position) == (1_700_000_000_000, 0xABCDEF)
    assert block.rows(0x100, rows_max=9, bytes_max=99) == [b"hi", b"", b"you"]


def test_reader_has_its_golden_key_and_bytes() -> None:
    assert reader_key(PREFIX, "größe") == PREFIX + b"gr\xc3\xb6\xc3\x9fe"
    assert split_reader_key(PREFIX + b"gr\xc3\xb6\xc3\x9fe") == "größe"
    assert encode_offset(0x102) == bytes.fromhex("0000000000000102")
    assert decode_offset(bytes.fromhex("0000000000000102")) == 0x102


# --- round trips ----------------------------------------------------------------------------------


@given(head=st.builds(LogHead, *[numbers] * 8))
def test_head_round_trips(head: LogHead) -> None:
    assert decode_log_head(encode_log_head(head)) == head


@given(offsets=st.lists(numbers, min_size=2, max_size=2))
def test_block_keys_sort_as_their_offsets(offsets: list[int]) -> None:
    keys = [block_key(PREFIX, offset) for offset in offsets]

    assert [split_block_key(key) for key in keys] == offsets
    assert sorted(keys) == [block_key(PREFIX, offset) for offset in sorted(offsets)]


@given(
    rows=rows_of_any_kind,
    first=st.integers(0, 1 << 60),
    skipped=st.integers(0, 11),
    rows_max=st.integers(1, 15),
    bytes_max=st.integers(-5, 100),
)
def test_rows_are_those_from_the_offset_that_both_limits_allow(
    rows: list[bytes], first: int, skipped: int, rows_max: int, bytes_max: int
) -> None:
    value = encode_block(encode_rows(rows), first_offset=first, appended_at_ms=1, position=2)
    block = decode_block(block_key(PREFIX, first + len(rows) - 1), value)
    skipped = min(skipped, len(rows))

    found = block.rows(first + skipped, rows_max=rows_max, bytes_max=bytes_max)

    expected: list[bytes] = []
    for row in rows[skipped:][:rows_max]:
        if sum(len(each) + 4 for each in [*expected, row]) > bytes_max:
            break
        expected.append(row)
    assert found == expected


@given(rows=rows_of_any_kind)
def test_bytes_of_a_block_are_its_rows_and_four_for_each(rows: list[bytes]) -> None:
    value = encode_block(encode_rows(rows), first_offset=0, appended_at_ms=0, position=1000)

    assert block_bytes(value) == sum(len(row) + 4 for row in rows)
    block = decode_block(block_key(PREFIX, len(rows) - 1), value)
    assert block.end_position == 1000 + block_bytes(value)
    assert block.has_rising_ends()


def test_block_of_many_rows_round_trips() -> None:
    rows = [b"%d" % number for number in range(10_000)]

    value = encode_block(encode_rows(rows), first_offset=5, appended_at_ms=0, position=0)

    block = decode_block(block_key(PREFIX, 10_004), value)
    assert block.rows(5, rows_max=LARGE, bytes_max=LARGE) == rows
    assert block.rows(9_999, rows_max=2, bytes_max=LARGE) == [b"9994", b"9995"]


# --- values that cannot be read -------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 63, 65])
def test_head_of_another_width_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"has {size} bytes instead of 64"):
        decode_log_head(bytes(size))


@pytest.mark.parametrize("size", [0, 7, 9])
def test_offset_of_another_width_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"has {size} bytes instead of 8"):
        decode_offset(bytes(size))
    with pytest.raises(ValueError, match=f"has {size} bytes instead of 8"):
        split_block_key(PREFIX + bytes(size))


@pytest.mark.parametrize("size", range(len(GOLDEN_BLOCK)))
def test_block_cut_short_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="block"):
        decode_block(block_key(PREFIX, 0x102), GOLDEN_BLOCK[:size])


@pytest.mark.parametrize("last_offset", [0, 0xFF, 0x101, 0x103, 0x1000, (1 << 64) - 1])
def test_block_under_the_key_of_another_is_refused(last_offset: int) -> None:
    with pytest.raises(ValueError, match="rows"):
        decode_block(block_key(PREFIX, last_offset), GOLDEN_BLOCK)


def test_block_under_a_key_before_its_first_row_is_refused() -> None:
    """Its position, read as the end of a row, would fit."""
    value = encode_block(encode_rows([b""]), first_offset=1, appended_at_ms=0, position=4)

    with pytest.raises(ValueError, match="rows of a block begin at 1 and end at 1"):
        decode_block(block_key(PREFIX, 0), value)


def test_row_that_ends_before_it_begins_is_seen() -> None:
    ends_at = 24
    falling = GOLDEN_BLOCK[:ends_at] + (3).to_bytes(4) + GOLDEN_BLOCK[ends_at + 4 :]

    assert not decode_block(block_key(PREFIX, 0x102), falling).has_rising_ends()
