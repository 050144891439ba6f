"""Packed contents: a list of bytes to whoever reads them, without an object for each."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.model import PackedContents

lists = st.lists(st.binary(max_size=8), max_size=20)
positions = st.none() | st.integers(-25, 25)


def ends_of(contents: list[bytes]) -> bytes:
    ends = [sum(map(len, contents[: at + 1])) for at in range(len(contents))]
    return struct.pack(f"<{len(ends)}I", *ends)


def assert_is(packed: PackedContents, contents: list[bytes]) -> None:
    assert packed == contents
    assert [packed[at] for at in range(len(packed))] == contents
    assert len(packed) == len(contents)
    assert packed.sizes == [len(each) for each in contents]
    assert packed.max_size == max(map(len, contents), default=0)
    assert packed.size == sum(map(len, contents))
    assert bytes(packed.values) == packed.joined == b"".join(contents)
    assert packed.ends_from_zero == ends_of(contents)


@given(contents=lists)
def test_packed_contents_are_those_that_were_packed(contents: list[bytes]) -> None:
    assert_is(PackedContents.pack(contents), contents)


@given(contents=lists, start=positions, stop=positions, step=st.sampled_from([None, 1, 2, -1]))
def test_slice_is_that_of_a_list(
    contents: list[bytes], start: int | None, stop: int | None, step: int | None
) -> None:
    packed = PackedContents.pack(contents)

    assert_is(packed[start:stop:step], contents[start:stop:step])


@given(contents=lists, a=st.integers(0, 20), b=st.integers(0, 20), c=st.integers(0, 20))
def test_slice_of_a_slice_is_that_of_a_list(contents: list[bytes], a: int, b: int, c: int) -> None:
    packed = PackedContents.pack(contents)

    assert_is(packed[a:][b:c], contents[a:][b:c])


@given(columns=st.lists(st.tuples(lists, st.integers(0, 5)), max_size=5))
def test_joined_slices_are_one_column(columns: list[tuple[list[bytes], int]]) -> None:
    slices = [PackedContents.pack(contents)[start:] for contents, start in columns]

    expected = [each for contents, start in columns for each in contents[start:]]
    assert_is(PackedContents.join(slices), expected)


@given(contents=lists)
def test_column_that_somebody_else_packed_is_read(contents: list[bytes]) -> None:
    values, ends = b"".join(contents), ends_of(contents)

    assert_is(PackedContents.read(values, ends), contents)
    assert_is(PackedContents.read(memoryview(values), memoryview(ends)), contents)


@pytest.mark.parametrize(
    ("values", "ends", "message"),
    [
        (b"abc", b"\3\0\0", "the ends have 3 bytes, no multiple of 4"),
        (b"abc", b"", "the ends of 0 contents do not fit 3 bytes"),
        (b"abc", b"\2\0\0\0", "the ends of 1 contents do not fit 3 bytes"),
        (b"abc", b"\4\0\0\0", "the ends of 1 contents do not fit 3 bytes"),
        (b"abc", b"\2\0\0\0\1\0\0\0\3\0\0\0", "the ends of 3 contents do not fit 3 bytes"),
        (b"", b"\xff\xff\xff\xff\0\0\0\0", "the ends of 2 contents do not fit 0 bytes"),
    ],
)
def test_column_whose_ends_do_not_fit_is_refused(values: bytes, ends: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PackedContents.read(values, ends)


def test_position_beyond_the_last_is_no_content() -> None:
    packed = PackedContents.pack([b"a", b"b"])

    assert (packed[-1], packed[-2]) == (b"b", b"a")
    for at in (2, -3):
        with pytest.raises(IndexError):
            packed[at]


def test_ends_of_a_column_of_gigabytes_are_moved_without_a_carry() -> None:
    """The highest that an end can be."""
    top = (1 << 32) - 1
    ends = memoryview(struct.pack("<3I", top - 2, top - 1, top)).cast("I")

    column = PackedContents(b"", ends, start=top - 3)

    assert struct.unpack("<3I", column.ends_from_zero) == (1, 2, 3)


def test_packed_contents_equal_no_other_contents() -> None:
    packed = PackedContents.pack([b"a", b"b"])

    assert packed != [b"ab"]
    assert packed != [b"a"]
    assert packed != 1
    assert repr(packed) == "PackedContents([b'a', b'b'])"


@given(contents=lists, start=st.integers(0, 5))
def test_contents_are_joined_and_a_whole_buffer_is_not_copied(
    contents: list[bytes], start: int
) -> None:
    packed = PackedContents.pack(contents)

    assert packed[start:].joined == b"".join(contents[start:])
    assert packed.joined is packed.joined
