"""The blocks of a topic's logs, as the contents of a group that shares its messages.

A group names a message by its reference, and a block by the reference of its last message. Where a
fork begins, a block of its parent counts up to there only: its other messages are not the fork's.
A group never writes or deletes contents. The topic deletes messages at its own limits, whether a
group has entries of them or not, so this reader may find nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from queueber.db.families import Family
from queueber.db.records.blocks import Block
from queueber.db.records.cutting import Sizes
from queueber.db.records.keys import prefix_end
from queueber.db.records.log import LogBlock, block_key, decode_log_block
from queueber.db.records.messages import contents_of
from queueber.db.records.runs import Run, make_run, new_mark
from queueber.db.store.contract import Reads, Store
from queueber.engine.kernel.transaction import Owner, Transaction
from queueber.engine.queue.blocks import BlockReader, Blocks
from queueber.engine.queue.recent_blocks import RecentBlocks
from queueber.ids import ItemId, reference, split_reference
from queueber.limits import PRIORITY_DEFAULT, TRIM_ACKNOWLEDGED_MS
from queueber.model import TopicSettings

_BLOCKS_AT_ONCE = 32


class Messages(Owner, Protocol):
    """A topic, as far as its groups need to know it."""

    @property
    def settings(self) -> TopicSettings: ...
    @property
    def partitions(self) -> int: ...
    def use_in(self, tx: Transaction[Any]) -> None: ...
    def first_offset(self, partition: int) -> int: ...
    def next_offset(self, partition: int) -> int: ...
    def stretches(self, partition: int) -> Sequence[tuple[bytes, int, int]]: ...
    def block_from(self, reads: Reads, partition: int, offset: int) -> LogBlock | None: ...


class MessageReader(BlockReader):
    """The blocks of messages that one operation reads, each once."""

    __slots__ = ("_times_ms", "_topic")

    loses = True

    def __init__(self, store: Store, topic: Messages) -> None:
        super().__init__(store, b"")
        self._topic = topic
        self._times_ms: dict[ItemId, int] = {}

    def __getitem__(self, run: Run) -> Block:
        """The block of a run; one without contents if messages of the run are gone from it."""
        block = self._find(run.block)
        if block is None or not _has_all(block, run.at, run.count):
            return _GONE
        return block

    def sizes(self, run: Run) -> Sizes:
        """The sizes of the messages of a run, which add up to that of the run in any case."""
        block = self[run]
        if block is _GONE or block.size(run.at, run.at + run.count) != run.size:
            return _EvenSizes(run)
        return block

    def kept(self, run: Run) -> Iterator[tuple[int, int]]:
        """From which position of the run up to which its messages are still there, in order."""
        partition, last = split_reference(run.last)
        first = max(0, self._topic.first_offset(partition) - last - 1 + run.count)
        if first >= run.count:
            return
        if not self._topic.settings.keeps_last_per_key:
            yield first, run.count
            return
        block = self._find(run.block)
        if block is not None:
            for start, stop in stretches(block, run.at + first, run.at + run.count):
                yield start - run.at, stop - run.at

    def has(self, run: Run, item_id: bytes) -> bool:
        position = run.position_of(item_id)
        return position is not None and any(a <= position < b for a, b in self.kept(run))

    def added_at_ms(self, run: Run, item_id: bytes) -> int:
        self._find(run.block)
        return self._times_ms.get(run.block, 0)

    def put(self, block_id: ItemId, found: LogBlock) -> Block:
        """Remember a block that was read already."""
        self._times_ms[block_id] = found.appended_at_ms
        block = self._blocks[block_id] = contents_of(found.value)
        return block

    def _find(self, block_id: ItemId) -> Block | None:
        known = self._blocks.get(block_id)
        if known is None:
            partition, offset = split_reference(block_id)
            if offset >= self._topic.first_offset(partition):
                found = self._topic.block_from(self._reads, partition, offset)
                if found is not None and found.first_offset <= offset:
                    return self.put(block_id, found)
        return known

    def _fetch(self, blocks: Sequence[ItemId]) -> None:
        for block in blocks:
            self._find(block)


class MessageBlocks(Blocks):
    """The blocks of one topic."""

    __slots__ = ("_topic",)

    def __init__(self, store: Store, prefix: bytes, topic: Messages) -> None:
        super().__init__(store, prefix, RecentBlocks())
        self._topic = topic

    def reader(self) -> MessageReader:
        return MessageReader(self._store, self._topic)

    def reader_of(self, reads: Reads) -> MessageReader:
        """Of the topic as it is now: messages never change."""
        return self.reader()

    def keep_started(self, rest: Run, value: bytes) -> None:
        """RocksDB's own cache is enough for blocks of logs."""

    def drop(self, tx: Transaction[Any], runs: Iterable[Run]) -> None:
        """The group is done with messages: perhaps all groups are."""
        look_at_acknowledged(tx, self._topic)


def look_at_acknowledged(tx: Transaction[Any], topic: Messages) -> None:
    """A group has moved: have messages deleted that all groups have acknowledged, if the topic
    does so."""
    if topic.settings.deletes_acknowledged:
        tx.look_at(topic, tx.now_ms + TRIM_ACKNOWLEDGED_MS)


def runs_from(
    store: Store, topic: Messages, partition: int, offset: int, blocks: MessageReader
) -> Iterator[Run]:
    """The messages of a partition from an offset on, as runs of a group that had none of them."""
    at = offset
    for prefix, _, end in topic.stretches(partition):
        for found in _blocks_from(store, prefix, at, end):
            stop = min(found.end_offset, end)
            block_id = reference(partition, stop - 1)
            block, span = blocks.put(block_id, found), stop - found.first_offset
            mark = new_mark(0, PRIORITY_DEFAULT, has_details=block.has_details)
            first = max(0, at - found.first_offset)
            for a, b in stretches(block, first, span):
                last = reference(partition, found.first_offset + b - 1)
                yield make_run(last, b - a, a, span, block.size(a, b), mark)
        at = max(at, end)


def _blocks_from(store: Store, prefix: bytes, offset: int, end: int) -> Iterator[LogBlock]:
    """The blocks of a log that have messages from one offset up to another.

    They are read a few at a time, more and more: an iterator would pin files of the store for as
    long as the caller does not ask for the next block.
    """
    at, wanted = offset, 1
    while at < end:
        start = block_key(prefix, at)
        found = store.scan(Family.LOG_BLOCKS, start, prefix_end(prefix), wanted)
        for key, value in found:
            block = decode_log_block(key, value)
            if block.first_offset >= end:
                return
            yield block
            at = block.end_offset
        if len(found) < wanted:
            return
        wanted = min(2 * wanted, _BLOCKS_AT_ONCE)


def stretches(block: Block, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The positions between two that the block has messages of, as start and stop."""
    positions = block.positions
    if isinstance(positions, range):
        if start < stop:
            yield start, stop
        return
    first = end = start
    for at in positions:
        if not start <= at < stop:
            continue
        if at != end:
            if first < end:
                yield first, end
            first = at
        end = at + 1
    if first < end:
        yield first, end


def _has_all(block: Block, at: int, count: int) -> bool:
    return isinstance(block.positions, range) or (at, at + count) in stretches(
        block, at, at + count
    )


class _Gone(Block):
    """A block of which nothing is left."""

    __slots__ = ()

    def contents(self, at: int, count: int) -> list[bytes]:
        return [b""] * count

    def details(self, at: int, count: int) -> tuple[list[bytes], list[bytes]]:
        return [b""] * count, [b""] * count


_GONE = _Gone.__new__(_Gone)


class _EvenSizes:
    """Sizes of the messages of a run that can no longer be read: all are about the same."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    def size(self, start: int, stop: int) -> int:
        run = self._run
        return run.size * (stop - run.at) // run.count - run.size * (start - run.at) // run.count
