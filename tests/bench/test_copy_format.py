"""What the benchmark sends to PostgreSQL, read back by hand: a field count, a length, the bytes."""

import struct

import pyarrow as pa
import pytest

from bench.copy_format import copy_rows


def _fields(rows: bytes) -> list[bytes]:
    fields, at = [], 0
    while at < len(rows):
        count, length = struct.unpack_from(">hi", rows, at)
        assert count == 1
        at += struct.calcsize(">hi")
        fields.append(rows[at : at + length])
        at += length
    return fields


@pytest.mark.parametrize(
    "contents", [[], [b""], [b"\0", b"", b"x" * 70_000], [bytes([n]) * n for n in range(256)]]
)
def test_rows_have_the_contents_in_order(contents: list[bytes]) -> None:
    assert _fields(bytes(copy_rows(pa.array(contents, pa.binary())))) == contents


def test_a_part_of_a_column_gives_its_own_rows_only() -> None:
    column = pa.array([b"before", b"one", b"", b"three", b"after"], pa.binary())

    assert _fields(bytes(copy_rows(column.slice(1, 3)))) == [b"one", b"", b"three"]
