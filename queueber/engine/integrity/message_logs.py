"""The check of a topic's log: its blocks of messages, its head, and what is kept of keys.

The blocks of a log follow each other without a gap. Only a topic that keeps the last message of
each key may have lost some of them, or parts of them. The log may begin inside its first block.
"""

from collections.abc import Collection, Iterator

from queueber.db.families import Family
from queueber.db.records import log
from queueber.db.records.keys import prefix_end, text_digest
from queueber.db.records.log import LogBlock, LogHead, encode_offset
from queueber.db.records.messages import MessageBlock
from queueber.db.store.contract import Store
from queueber.engine.integrity.logs import check_neighbours
from queueber.engine.integrity.queue_entries import readable
from queueber.engine.integrity.stored_blocks import read_block, unreadable_details
from queueber.ids import reference, shifted
from queueber.limits import ID_BYTES

Broken = tuple[str, str]
"""A rule, and how it is broken."""


def read_messages(key: bytes, value: bytes) -> tuple[LogBlock, MessageBlock]:
    """A block, read to the last byte. Raises errors of many kinds."""
    plain, found = log.decode_log_block(key, value), MessageBlock(key, value)
    stored = read_block(reference(0, found.end_offset - 1), found.block, None)
    if unreadable_details(found.block, stored):
        raise ValueError("the key or the attributes of a message cannot be read")
    return plain, found


def follows(earlier: LogBlock, block: LogBlock, *, keeps_last: bool) -> Iterator[str]:
    """In which ways a block cannot be the next one after another."""
    if not keeps_last:
        yield from check_neighbours(f"up to {block.end_offset}", earlier, block)
        return
    if block.first_offset < earlier.end_offset:
        yield f"the block up to {block.end_offset} begins before {earlier.end_offset}"
    if block.position <= earlier.position or block.appended_at_ms < earlier.appended_at_ms:
        yield f"the block up to {block.end_offset} has the place or time of an earlier one"


class MessageLogCheck:
    """Reads all of a log once, a block at a time."""

    def __init__(self, store: Store, prefix: bytes, *, keeps_last: bool) -> None:
        self._store = store
        self._prefix = prefix
        self._keeps_last = keeps_last
        self.head = LogHead()
        self.last_id = bytes(ID_BYTES)
        self.last_sequence = 0
        """Of the last message that it has."""
        self._last_of_keys = self._replaced = 0
        self._ends: tuple[LogBlock, LogBlock] | None = None

    def run(self, partition: int, tombstones: Collection[bytes]) -> Iterator[Broken]:
        """`tombstones` has the references of those that an entry in `forget` deletes."""
        stored = self._store.get(Family.LOGS, self._prefix)
        head = LogHead() if stored is None else readable(log.decode_log_head, stored)
        if head is None:
            yield "I15", "the head of its log cannot be read"
            return
        self.head = head
        walk = self._store.walk(Family.LOG_BLOCKS, self._prefix, prefix_end(self._prefix))
        for key, value in walk:
            read = readable(read_messages, key, value)
            if read is None:
                yield "I15", f"the block {key.hex()} cannot be read"
                continue
            yield from self._check_order(*read)
            if self._keeps_last:
                yield from self._check_keys(read[1], partition, tombstones)
        yield from self._check_head()
        yield from self._check_counts()

    def _check_order(self, block: LogBlock, found: MessageBlock) -> Iterator[Broken]:
        first, last = self._ends or (block, None)
        if last is not None:
            for text in follows(last, block, keeps_last=self._keeps_last):
                yield "I15", text
            if found.first_id <= self.last_id or found.sequence <= self.last_sequence:
                yield (
                    "I15",
                    f"the block up to {block.end_offset} has ids or sequences of earlier ones",
                )
        self._ends = (first, block)
        self.last_id = shifted(found.first_id, found.block.span - 1)
        self.last_sequence = found.sequence + found.block.span - 1

    def _check_head(self) -> Iterator[Broken]:
        head = self.head
        if not self._keeps_last:
            expected = log.head_of(self._ends, head)
            if expected.first_offset <= head.first_offset < expected.first_block_end_offset:
                expected = expected._replace(first_offset=head.first_offset)
            if expected != head:
                yield "I15", f"its blocks make {expected}, but its head is {head}"
        elif self._ends is not None:
            first, last = self._ends
            if (
                not head.first_offset <= first.first_offset < last.end_offset <= head.next_offset
                or not head.start_position <= last.position < head.end_position
                or not head.oldest_ms <= first.appended_at_ms <= last.appended_at_ms <= head.last_ms
            ):
                yield "I15", f"its blocks are not between the ends of its head, {head}"

    # --- topics that keep the last message of each key --------------------------------------------

    def _check_keys(
        self, found: MessageBlock, partition: int, tombstones: Collection[bytes]
    ) -> Iterator[Broken]:
        block, prefix = found.block, self._prefix
        positions = list(block.positions)
        keys = [block.details(at, 1)[0][0].decode() for at in positions]
        offsets = [found.first_offset + at for at in positions]
        last = self._store.get_many(Family.LAST_OF_KEY, [prefix + text_digest(key) for key in keys])
        marks = self._store.get_many(
            Family.REPLACED, [prefix + encode_offset(each) for each in offsets]
        )
        for at, key, offset, known, mark in zip(positions, keys, offsets, last, marks, strict=True):
            last_offset = None if known is None or not key else log.decode_offset(known)
            is_last, is_replaced = last_offset == offset, mark is not None
            self._last_of_keys += is_last
            self._replaced += is_replaced
            if is_last == is_replaced if key else is_replaced:
                yield "I19", f"message {offset} is {_words(is_last=is_last)}"
            elif last_offset is not None and last_offset < offset and not is_last:
                yield "I19", f"message {offset} is later than the last of its key, {last_offset}"
            is_tombstone = bool(key) and not block.contents(at, 1)[0]
            if is_last and is_tombstone and reference(partition, offset) not in tombstones:
                yield "I19", f"no entry says when to delete the tombstone {offset}"

    def _check_counts(self) -> Iterator[Broken]:
        for family, found in (
            (Family.LAST_OF_KEY, self._last_of_keys),
            (Family.REPLACED, self._replaced),
        ):
            walk = self._store.walk(family, self._prefix, prefix_end(self._prefix))
            count = sum(1 for _ in walk)
            if count != found:
                yield "I19", f"{family.family_name} has {count} entries, but {found} messages fit"


def _words(*, is_last: bool) -> str:
    if is_last:
        return "the last of its key, and to be deleted"
    return "neither the last of its key nor to be deleted, or has no key and is"
