"""The binary format of PostgreSQL's COPY, made from Arrow without Python code for each row.

psycopg's `write_row` is much slower, because it makes it row by row. The text format has two
characters for each byte, which the server has to decode.
"""

import sys
from array import array

import pyarrow as pa
import pyarrow.compute as pc

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(4) + bytes(4)
"""Signature, flags, and the length 0 of an extension."""
TRAILER = b"\xff\xff"
_ONE_FIELD = b"\0\1"
_LENGTH_BYTES = 4


def copy_rows(contents: pa.Array) -> memoryview:
    """A binary column without nulls, as rows of one field: 1, its length, its bytes."""
    lengths = array("i", memoryview(pc.binary_length(contents).buffers()[1]).cast("i"))
    if sys.byteorder == "little":
        lengths.byteswap()
    heads = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_LENGTH_BYTES), len(contents), [None, pa.py_buffer(lengths)]
    ).cast(pa.binary())
    rows = pc.binary_join_element_wise(_ONE_FIELD, heads, contents, b"")
    # The values of the column are contiguous: from the start of the first to the end of the last.
    _, offsets, values = rows.buffers()
    ends = memoryview(offsets).cast("i")
    return memoryview(values)[ends[rows.offset] : ends[rows.offset + len(rows)]]
