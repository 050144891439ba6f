"""The check of a queue's blocks: their ids, and what is left of each."""

from collections.abc import Iterator

from queueber.db.families import Family
from queueber.db.records.blocks import Block, Leftover, bits_of, decode_leftover
from queueber.db.records.remembered import ids_digest
from queueber.engine.integrity.queue_entries import CheckedQueue, InStep, Violation
from queueber.engine.integrity.stored_blocks import (
    StoredBlock,
    read_block,
    stretches,
    unreadable_details,
)
from queueber.ids import shifted


class BlocksCheck:
    """Reads each block once, with all it has; sums up the items that are left."""

    def __init__(self, queue: CheckedQueue) -> None:
        self._broken = queue.broken
        self._entries = queue.entries
        self._last_id = queue.counters.last_id
        self.items = 0
        self.digest = 0
        """A sum over their ids."""
        self.contents_bytes = 0

    def run(self) -> Iterator[Violation]:
        previous = b""
        leftovers = InStep(self._entries.walk(Family.LEFTOVERS))
        for last, value in self._entries.walk(Family.ITEMS):
            leftover = None
            for key, stored in leftovers.up_to(last):
                if key == last:
                    leftover = decode_leftover(stored)
                else:
                    yield self._without_block(key)
            block = Block(value)
            found = read_block(last, block, leftover)
            if unreadable := unreadable_details(block, found) & found.left:
                text = f"the details of {unreadable.bit_count()} items cannot be read"
                yield self._broken("I7", f"block {last.hex()}: {text}")
            for text in _misfits(found, len(value), leftover):
                yield self._broken("I14", f"block {last.hex()} {text}")
            if found.first <= previous:
                text = f"block {last.hex()} of {found.span} ids overlaps {previous.hex()}"
                yield self._broken("I14", text)
            self._add_up(found)
            previous = last
        for key, _ in leftovers.rest():
            yield self._without_block(key)
        if previous > self._last_id:
            yield self._broken("I8", f"block {previous.hex()} is newer than last_id")

    def _without_block(self, key: bytes) -> Violation:
        return self._broken("I14", f"leftovers has {key.hex()}, but there is no such block")

    def _add_up(self, block: StoredBlock) -> None:
        left = block.left & block.present
        self.items += left.bit_count()
        self.contents_bytes += block.size_of(left)
        for start, stop in stretches(left):
            self.digest += ids_digest(shifted(block.last, stop - block.span), stop - start)


def _misfits(block: StoredBlock, stored: int, leftover: Leftover | None) -> Iterator[str]:
    """In which ways a leftover, or that there is none, does not fit the block."""
    every = bits_of(0, block.span)
    if leftover is None:
        if block.present != every:
            yield f"has {block.present.bit_count()} of {block.span} items, but no leftover"
        return
    if leftover.bits == every:
        yield "has a leftover, but none of its items is gone"
    if not leftover.bits:
        yield "has no item left"
    if leftover.bits & ~block.present:
        yield "has not all the items that are left"
    size = block.size_of(leftover.bits & block.present)
    if (leftover.stored, leftover.size) != (stored, size):
        yield f"has {stored} bytes, {size} of them left, but its leftover is {leftover}"
    if leftover.is_wasteful:
        yield f"has {stored} bytes for items of {size}: it must be rewritten"
