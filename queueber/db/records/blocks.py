"""Blocks: the contents of items that came together, with their keys and attributes as columns.

The key of a block has the last of its ids. Ids of a block are consecutive, so the others are known
from its `span`, the number of its ids.

    flags 1 | span 2 | count 2 | positions 2 each | contents | keys | attributes

A column is the ends of its values, 4 bytes each, and then the values one after the other. `keys`
and `attributes` are there if the flag says so. A block that was rewritten without items that are
gone has fewer values than ids (`count` is less than `span`), and the positions of those it has.

`Leftover` says what is left of a block of which some items are gone: bytes of the block as it is
stored, bytes of the items that are left, and a bit for each id. A block without it is whole.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from queueber.limits import BLOCK_BYTES_MAX, BLOCK_ITEMS_MAX, BLOCK_WASTE_FACTOR
from queueber.model import NewItems, PackedContents, Rows

_HEAD = struct.Struct("<BHH")
_HAS_DETAILS = 1
END_BYTES = 4
_POSITION_BYTES = 2


class Column(NamedTuple):
    """The values of a column: where its ends are in the block, and where the first value is."""

    ends_at: int
    values_at: int
    stop: int

    @classmethod
    def read(cls, value: bytes, at: int, count: int) -> "Column":
        values_at = at + count * END_BYTES
        last = int.from_bytes(value[values_at - END_BYTES : values_at], "little")
        return cls(at, values_at, values_at + last)

    def end(self, value: bytes, count: int) -> int:
        """Where the first `count` values end in the block."""
        if not count:
            return self.values_at
        at = self.ends_at + count * END_BYTES
        return self.values_at + int.from_bytes(value[at - END_BYTES : at], "little")

    def values(self, value: bytes, start: int, stop: int) -> list[bytes]:
        """Raises `ValueError` if the ends do not rise: it would give the values of other items."""
        ends = struct.unpack_from(f"<{stop - start}I", value, self.ends_at + start * END_BYTES)
        base = self.values_at
        begin = self.end(value, start)
        bounds = [begin - base, *ends]
        if bounds != sorted(bounds) or base + bounds[-1] > self.stop:
            raise ValueError("the values of a block overlap")
        values = []
        for each in ends:
            end = base + each
            values.append(value[begin:end])
            begin = end
        return values


class Block:
    """A block as it is stored; its values are read on demand.

    Positions are those of the ids. A caller asks only for items that are left: a block that does
    not have them raises `IndexError`.
    """

    __slots__ = ("_columns", "_count", "_positions", "span", "value")

    def __init__(self, value: bytes) -> None:
        """Raises `ValueError` if the value is no block."""
        try:
            flags, span, count = _HEAD.unpack_from(value)
            at = _HEAD.size
            self._positions: tuple[int, ...] | None = None
            if count < span:
                self._positions = struct.unpack_from(f"<{count}H", value, at)
                at += count * _POSITION_BYTES
        except struct.error as error:
            raise ValueError(f"a block has only {len(value)} bytes") from error
        self.value = value
        self.span: int = span
        self._count: int = count
        self._columns = [Column.read(value, at, count)]
        if flags & _HAS_DETAILS:
            for _ in range(2):
                self._columns.append(Column.read(value, self._columns[-1].stop, count))
        if not 0 < count <= span or self._columns[-1].stop != len(value):
            raise ValueError(f"{count} items do not fill a block of {len(value)} bytes")
        if self._positions is not None and not _rise(self._positions, span):
            raise ValueError(f"{count} positions do not rise up to {span}")

    @property
    def has_details(self) -> bool:
        return len(self._columns) > 1

    @property
    def positions(self) -> Sequence[int]:
        """Those of the items that it has values of."""
        return range(self.span) if self._positions is None else self._positions

    def _slots(self, at: int, count: int) -> tuple[int, int]:
        """Where the items at `count` positions from `at` are in the columns."""
        positions = self._positions
        start = at if positions is None else bisect_left(positions, at)
        stop = start + count
        if stop > self._count or (count and positions and positions[stop - 1] != at + count - 1):
            raise IndexError(f"a block has not all of {count} items from position {at}")
        return start, stop

    def contents(self, at: int, count: int) -> list[bytes]:
        return self._columns[0].values(self.value, *self._slots(at, count))

    def packed(self, at: int, count: int) -> tuple[bytes, bytes]:
        """Where each of the contents ends, 4 bytes each, and the contents one after the other."""
        start, stop = self._slots(at, count)
        column, value = self._columns[0], self.value
        begin, end = column.end(value, start), column.end(value, stop)
        if end < begin:
            raise ValueError("the values of a block overlap")
        if count == 1:
            return (end - begin).to_bytes(END_BYTES, "little"), value[begin:end]
        ends_at = column.ends_at + start * END_BYTES
        ends = value[ends_at : ends_at + count * END_BYTES]
        if offset := begin - column.values_at:
            moved = [each - offset for each in struct.unpack(f"<{count}I", ends)]
            try:
                ends = struct.pack(f"<{count}I", *moved)
            except struct.error as error:
                raise ValueError("the values of a block overlap") from error
        return ends, value[begin:end]

    def details(self, at: int, count: int) -> tuple[list[bytes], list[bytes]]:
        """Keys and attributes, as they are stored."""
        slots = self._slots(at, count)
        if len(self._columns) == 1:
            return [b""] * count, [b""] * count
        keys, attributes = [column.values(self.value, *slots) for column in self._columns[1:]]
        return keys, attributes

    def size(self, start: int, stop: int) -> int:
        """Bytes of the items from one position up to, not including, another."""
        start, stop = self._slots(start, stop - start)
        value, size = self.value, 0
        for column in self._columns:
            size += column.end(value, stop) - column.end(value, start)
        return size

    def fitting(self, at: int, count: int, bytes_max: int, *, extra: int) -> int:
        """How many of the items fit into the bytes, if each takes `extra` more than its own."""
        if count and self.size(at, at + count) + count * extra <= bytes_max:
            return count  # as mostly
        return bisect_right(
            range(1, count + 1), bytes_max, key=lambda n: self.size(at, at + n) + n * extra
        )

    def rewritten(self, positions: Sequence[int]) -> bytes:
        """The value of a block that has only the items at these positions left."""
        slots = [self._slots(at, 1)[0] for at in positions]
        columns = [column.values(self.value, 0, self._count) for column in self._columns]
        return _encode(
            [[values[slot] for slot in slots] for values in columns], self.span, positions
        )


def _rise(positions: Sequence[int], limit: int) -> bool:
    """Whether each is more than the one before, and less than the limit."""
    return positions[-1] < limit and list(positions) == sorted(set(positions))


def encode_block(
    contents: Sequence[bytes], keys: Sequence[bytes] = (), attributes: Sequence[bytes] = ()
) -> bytes:
    """A block of new items. `keys` and `attributes` have one for each item, or both are empty."""
    columns = [contents, keys, attributes] if keys or attributes else [contents]
    return _encode(columns, len(contents), ())


def _encode(columns: Sequence[Sequence[bytes]], span: int, positions: Sequence[int]) -> bytes:
    count = len(columns[0])
    parts: list[bytes | memoryview] = [
        _HEAD.pack(_HAS_DETAILS if len(columns) > 1 else 0, span, count)
    ]
    if count < span:
        parts.append(struct.pack(f"<{count}H", *positions))
    for column in columns:
        if isinstance(column, PackedContents):
            parts += (column.ends_from_zero, column.values)
        else:
            parts.append(struct.pack(f"<{count}I", *accumulate(map(len, column))))
            parts += column
    return b"".join(parts)


# --- what is left of a block ----------------------------------------------------------------------


class Leftover(NamedTuple):
    """What is left of a block of which some items are gone."""

    stored: int
    """Bytes of the block's value."""
    size: int
    """Bytes of the items that are left."""
    bits: int
    """The bit of each position whose item is left."""

    @property
    def count(self) -> int:  # type: ignore[override]  # a tuple's own method, which nobody calls
        return self.bits.bit_count()

    @property
    def is_wasteful(self) -> bool:
        """Whether the block must be rewritten. The rule holds after every write: the disk has at
        most `BLOCK_WASTE_FACTOR` times what a block of the items that are left would have."""
        return self.stored > BLOCK_WASTE_FACTOR * rewritten_bytes(self.size, self.count)


def rewritten_bytes(size: int, count: int) -> int:
    """The most bytes of a block with so many of its items."""
    return _HEAD.size + size + count * (_POSITION_BYTES + 3 * END_BYTES)


_LEFTOVER = struct.Struct("<II")


def encode_leftover(left: Leftover) -> bytes:
    size = (left.bits.bit_length() + 7) // 8
    return _LEFTOVER.pack(left.stored, left.size) + left.bits.to_bytes(size, "little")


def decode_leftover(value: bytes) -> Leftover:
    """Raises `ValueError` if the value is too short for one."""
    if len(value) < _LEFTOVER.size:
        raise ValueError(f"a leftover has {len(value)} bytes, not even {_LEFTOVER.size}")
    stored, size = _LEFTOVER.unpack_from(value)
    return Leftover(stored, size, int.from_bytes(value[_LEFTOVER.size :], "little"))


def bits_of(at: int, count: int) -> int:
    """The bits of consecutive positions."""
    return ((1 << count) - 1) << at


def positions_of(bits: int) -> list[int]:
    return [at for at in range(bits.bit_length()) if bits >> at & 1]


# --- new blocks -----------------------------------------------------------------------------------


class NewBlock(NamedTuple):
    """A block of new items: those from `start` up to, not including, `stop` of a call."""

    start: int
    stop: int
    value: bytes
    ends: Sequence[int]
    """For each item of the call, not only of the block, where its bytes end, counted from the
    first."""
    has_details: bool

    def size(self, start: int, stop: int) -> int:
        """Bytes of the items from one position of the block up to, not including, another."""
        start, stop = start + self.start, stop + self.start
        return self.ends[stop - 1] - (self.ends[start - 1] if start else 0)


def make_blocks(items: NewItems | Rows, breaks: Sequence[int] = ()) -> Iterator[NewBlock]:
    """Cut new items into blocks, in order.

    `breaks` are where a block must begin, because the id is not one more than the one before.
    """
    contents = items.contents
    count = len(contents)
    keys = attributes = ()  # type: Sequence[bytes]
    ends: Sequence[int]
    if any(items.keys) or any(items.attributes):
        keys = [key.encode() for key in items.keys] or [b""] * count
        attributes = [pack_attributes(each) for each in items.attributes] or [b""] * count
        columns = zip(_sizes(contents), map(len, keys), map(len, attributes), strict=True)
        ends = list(accumulate(map(sum, columns)))
    elif isinstance(contents, PackedContents):
        ends = memoryview(contents.ends_from_zero).cast("I")
    else:
        ends = list(accumulate(map(len, contents)))
    start = 0
    while start < count:
        limit = (ends[start - 1] if start else 0) + BLOCK_BYTES_MAX
        next_break = breaks[at] if (at := bisect_right(breaks, start)) < len(breaks) else count
        last = min(next_break, start + BLOCK_ITEMS_MAX)
        stop = max(start + 1, bisect_right(ends, limit, start, last))
        value = encode_block(contents[start:stop], keys[start:stop], attributes[start:stop])
        yield NewBlock(start, stop, value, ends, bool(keys))
        start = stop


def _sizes(contents: Sequence[bytes]) -> Iterable[int]:
    return contents.sizes if isinstance(contents, PackedContents) else map(len, contents)


def pack_attributes(attributes: Mapping[str, str]) -> bytes:
    """Names and values in turn: 2 bytes of length, then UTF-8."""
    encoded = [text.encode() for pair in attributes.items() for text in pair]
    return b"".join([len(each).to_bytes(2) + each for each in encoded])


def unpack_attributes(packed: bytes) -> dict[str, str]:
    texts = []
    at = 0
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 2])
        texts.append(packed[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return dict(zip(texts[::2], texts[1::2], strict=True))
