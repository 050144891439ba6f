"""Rebuild the blocks of a queue: those that can be read, and what is left of each."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from queueber.db.families import Family
from queueber.db.records.blocks import (
    Block,
    Leftover,
    bits_of,
    decode_leftover,
    encode_leftover,
    positions_of,
)
from queueber.engine.integrity.queue_entries import InStep, QueueEntries, QueueWrites, readable
from queueber.engine.integrity.stored_blocks import (
    StoredBlock,
    block_from,
    read_block,
    unreadable_details,
)
from queueber.ids import ItemId


@dataclass(frozen=True, slots=True)
class OldBlock:
    """A block that can be read."""

    block: Block
    stored: StoredBlock
    leftover: Leftover | None
    """None if there was none that could be read: all its items count as left."""
    completed: int
    """The bits of the items that have a result."""

    def left(self, claimed: int) -> int:
        """The bits of the items that are left, given those that sound runs have.

        An item that a run has is left. A leftover whose size is not that of its items is damaged:
        the runs tell what it had if they agree with it, or have items of its size. If they do not,
        all is left that the block has.
        """
        bits, size_of = self.stored.left, self.stored.size_of
        if self.leftover is None or bits == claimed:
            return bits
        if self.leftover.size in (size_of(bits), size_of(bits | claimed)):
            return bits | claimed
        if not claimed & ~bits and self.leftover.size == size_of(claimed):
            return claimed
        return self.stored.present

    def from_position(self, start: int) -> "OldBlock | None":
        """The block without the ids before a position; None if there is nothing after it."""
        present, left = self.stored.present >> start, self.stored.left >> start
        if not present:
            return None
        block = block_from(self.block, self.stored, start)
        stored = read_block(self.stored.last, block, None)
        stored = replace(stored, present=present, left=left)
        leftover = Leftover(len(block.value), stored.size_of(left), left)
        return OldBlock(block, stored, leftover, self.completed >> start)


@dataclass(slots=True)
class BlocksRebuild:
    entries: QueueEntries
    writes: QueueWrites
    completed: Mapping[ItemId, int]
    """By block: the bits of the items that have a result."""
    lost: Counter[str]
    """Counts what cannot be kept."""

    def walk(self) -> Iterator[OldBlock]:
        """Every block that can be read, in order."""
        leftovers = InStep(self.entries.walk(Family.LEFTOVERS))
        self.writes.delete_all(Family.LEFTOVERS)
        previous = b""
        for last, value in self.entries.walk(Family.ITEMS):
            old = readable(self._read, last, value, dict(leftovers.up_to(last)).get(last))
            if old is None:
                self.lost["blocks of items that cannot be read"] += 1
                self.writes.delete(Family.ITEMS, last)
                continue
            overlapping = int.from_bytes(previous) - int.from_bytes(old.stored.first) + 1
            if overlapping > 0:
                gone = (old.stored.left & bits_of(0, overlapping)).bit_count()
                self.lost["items of a block that has ids of another"] += gone
                old = old.from_position(overlapping)
                if old is None:
                    self.writes.delete(Family.ITEMS, last)
                    continue
                self.writes.put(Family.ITEMS, last, old.block.value)
            previous = last
            yield old

    def _read(self, last: bytes, value: bytes, leftover: bytes | None) -> OldBlock:
        left = None if leftover is None else readable(decode_leftover, leftover)
        block = Block(value)
        stored = read_block(last, block, left)
        stored = replace(stored, left=stored.left & stored.present)
        return OldBlock(block, stored, left, self.completed.get(stored.last, 0))

    def keep(self, old: OldBlock, claimed: int) -> int:
        """Store what is left of a block: nothing, some or all of it; returns the bits."""
        left = self._without_ended(old, old.left(claimed))
        block, stored = old.block, old.stored
        if not left:
            self.writes.delete(Family.ITEMS, stored.last)
        elif left != bits_of(0, stored.span):
            leftover = Leftover(len(block.value), stored.size_of(left), left)
            if leftover.is_wasteful:
                value = block.rewritten(positions_of(left))
                self.writes.put(Family.ITEMS, stored.last, value)
                leftover = leftover._replace(stored=len(value))
            self.writes.put(Family.LEFTOVERS, stored.last, encode_leftover(leftover))
        return left

    def _without_ended(self, old: OldBlock, left: int) -> int:
        """Keep no items that cannot be read, or have a result."""
        unreadable = left & unreadable_details(old.block, old.stored)
        if unreadable:
            self.lost["items whose contents cannot be read"] += unreadable.bit_count()
        if came_back := left & ~unreadable & old.completed:
            self.lost["items that were completed, and had come back"] += came_back.bit_count()
        return left & ~unreadable & ~came_back
