"""The blocks of a queue as they are stored, for its check and its rebuild.

A `StoredBlock` knows the sizes of its items but not their contents, so many of them fit in memory.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from queueber.db.families import Family
from queueber.db.records.blocks import (
    Block,
    Leftover,
    bits_of,
    decode_leftover,
    encode_block,
    unpack_attributes,
)
from queueber.db.records.keys import prefix_end
from queueber.db.records.runs import Mark, Run
from queueber.engine.integrity.queue_entries import QueueEntries, readable
from queueber.ids import ItemId, shifted

_CACHED_MAX = 1000
_READ_TOGETHER = 64
"""Blocks that are in memory at once with their contents: 4 MiB, unless items are large."""


@dataclass(frozen=True, slots=True)
class StoredBlock:
    last: ItemId
    span: int
    has_details: bool
    present: int
    """The bit of each position that it has a value for."""
    left: int
    """The bit of each position whose item is left."""
    ends: "array[int]"
    """For each position, where the bytes of its item end, counted from the first."""

    @property
    def first(self) -> ItemId:
        return shifted(self.last, 1 - self.span)

    def size(self, start: int, stop: int) -> int:
        """Bytes of the items from one position up to, not including, another."""
        return self.ends[stop - 1] - (self.ends[start - 1] if start else 0)

    def size_of(self, bits: int) -> int:
        return sum([self.size(start, stop) for start, stop in stretches(bits)])

    def position_of(self, item_id: bytes) -> int | None:
        """The position of an id; None if the block has not got it."""
        position = int.from_bytes(item_id) - int.from_bytes(self.first)
        return position if 0 <= position < self.span else None

    def run(self, start: int, stop: int, mark: Mark) -> Run:
        """The items from one position up to, not including, another."""
        last = shifted(self.last, stop - self.span)
        return Run(last, stop - start, start, self.span, self.size(start, stop), mark, self.last)


def stretches(bits: int) -> Iterator[tuple[int, int]]:
    """Consecutive positions whose bits are set, as start and stop."""
    start = 0
    while bits:
        zeros = (bits & -bits).bit_length() - 1
        start, bits = start + zeros, bits >> zeros
        ones = (~bits & (bits + 1)).bit_length() - 1
        yield start, start + ones
        start, bits = start + ones, bits >> ones


def read_block(last: bytes, block: Block, leftover: Leftover | None) -> StoredBlock:
    """Raises `ValueError` if a value of the block, or its ids, are not where they should be."""
    if block.span > int.from_bytes(last[8:]) + 1:
        raise ValueError(f"{block.span} ids do not fit before {last.hex()}")
    present = bits_of(0, block.span)
    if len(block.positions) < block.span:
        present = sum([1 << at for at in block.positions])
    sizes = [0] * block.span
    for start, stop in stretches(present):
        lengths = [map(len, column) for column in _columns(block, start, stop)]
        sizes[start:stop] = map(sum, zip(*lengths, strict=True))
    left = present if leftover is None else leftover.bits
    ends = array("Q", accumulate(sizes))
    return StoredBlock(ItemId(last), block.span, block.has_details, present, left, ends)


def _columns(block: Block, start: int, stop: int) -> list[list[bytes]]:
    """Contents, and keys and attributes if there are some."""
    columns = [block.contents(start, stop - start)]
    return [*columns, *block.details(start, stop - start)] if block.has_details else columns


def unreadable_details(block: Block, found: StoredBlock) -> int:
    """The bit of each position whose key or attributes cannot be read."""
    bits = 0
    for start, stop in stretches(found.present if block.has_details else 0):
        columns = block.details(start, stop - start)
        for at, (key, attributes) in enumerate(zip(*columns, strict=True), start):
            if readable(key.decode) is None or readable(unpack_attributes, attributes) is None:
                bits |= 1 << at
    return bits


def block_from(block: Block, found: StoredBlock, start: int) -> Block:
    """The block without the ids before a position; items that it has no values of are empty."""
    columns: list[list[bytes]] = [[b""] * (block.span - start) for _ in range(3)]
    for a, b in stretches(found.present >> start):
        for column, values in zip(
            columns, _columns(block, start + a, start + b), strict=block.has_details
        ):
            column[a:b] = values
    return Block(encode_block(*columns[: 3 if block.has_details else 1]))


class BlockCache:
    """The blocks that were read lately, by their last ids."""

    def __init__(self, entries: QueueEntries) -> None:
        self._entries = entries
        self._blocks: dict[ItemId, StoredBlock | None] = {}

    def fetch(self, blocks: Sequence[ItemId]) -> None:
        """Read many blocks, each once. Up to a thousand are there until the next call."""
        missing = list(dict.fromkeys([each for each in blocks if each not in self._blocks]))
        if len(self._blocks) + len(missing) > _CACHED_MAX:
            self._blocks.clear()
            missing = list(dict.fromkeys(blocks))
        for at in range(0, len(missing), _READ_TOGETHER):
            self._read(missing[at : at + _READ_TOGETHER])

    def _read(self, blocks: list[ItemId]) -> None:
        values = self._entries.get_many(Family.ITEMS, blocks)
        leftovers = self._entries.get_many(Family.LEFTOVERS, blocks)
        for last, value, leftover in zip(blocks, values, leftovers, strict=True):
            found = None
            if value is not None:
                left = None if leftover is None else decode_leftover(leftover)
                found = read_block(last, Block(value), left)
            self._blocks[last] = found

    def __getitem__(self, block: ItemId) -> StoredBlock | None:
        """A block that was fetched; None if it does not exist."""
        return self._blocks[block]


class BlockFinder:
    """Finds the blocks of items; ids that come in order and lie close together cost one read."""

    def __init__(self, entries: QueueEntries) -> None:
        self._entries = entries
        self._from = b"\xff"
        self._found: tuple[bytes, StoredBlock | None] = (b"", None)
        """The last id of the first block that is not before `_from`, and the block if it can be
        read."""

    def find(self, item_id: bytes) -> tuple[StoredBlock, int] | None:
        """The block that has an id, and its position there."""
        if not self._from <= item_id <= self._found[0]:
            self._from, self._found = item_id, self._first_from(item_id)
        block = self._found[1]
        position = None if block is None else block.position_of(item_id)
        return None if block is None or position is None else (block, position)

    def _first_from(self, item_id: bytes) -> tuple[bytes, StoredBlock | None]:
        prefix = self._entries.prefix
        found = self._entries.store.scan(Family.ITEMS, prefix + item_id, prefix_end(prefix), 1)
        if not found:
            return b"\xff" * 16, None
        [(key, value)] = found
        last = key[len(prefix) :]
        leftover = self._entries.get(Family.LEFTOVERS, last)
        left = None if leftover is None else readable(decode_leftover, leftover)
        return last, readable(lambda: read_block(last, Block(value), left))
