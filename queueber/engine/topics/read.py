"""Read: messages of one partition from a position on, without a trace of the reader.

One rule holds for every door. A start before the first message that is kept, or past the end, is
refused, and the error names both ends. A caller that asks to be moved starts at the nearest end
instead, and is told how many messages it missed.
"""

from collections.abc import Callable, Iterator

from queueber.db.families import Family
from queueber.db.records.log import LogBlock, block_key
from queueber.db.records.messages import MessageBlock, read_message_head
from queueber.db.store.contract import Reads
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import InvalidArgument, OutOfRange, invariant
from queueber.ids import shifted
from queueber.limits import ITEM_WIRE_BYTES
from queueber.model import Bounds, MessageSlice, PackedMessages, Position, Start

_NO_LIMIT = 1 << 62


def start_of(
    reads: Reads, topic: TopicState, partition: int, position: Position
) -> tuple[int, int]:
    """The offset of a position, and how many messages from there on are deleted already."""
    topic.check_partition(partition)
    first, end = topic.first_offset(partition), topic.next_offset(partition)
    match position.start:
        case Start.EARLIEST:
            return first, 0
        case Start.LATEST:
            return end, 0
        case Start.LAST:
            return max(first, end - position.value), 0
        case Start.TIME:
            return offset_at(reads, topic, partition, position.value), 0
        case Start.GROUP:
            raise InvalidArgument("start: only a group knows where it goes on")
    offset = position.value
    if first <= offset <= end:
        return offset, 0
    if not position.moves:
        raise OutOfRange(
            f"offset is {offset}; partition {partition} of topic {topic.name!r} has messages from "
            f"{first} up to {end}",
            first=first,
            next=end,
        )
    return (first, first - offset) if offset < first else (end, 0)


def offset_at(reads: Reads, topic: TopicState, partition: int, at_ms: int) -> int:
    """The offset of the first message that was published at that time or later."""
    return topic.search(reads, partition, lambda block: block.appended_at_ms >= at_ms)


def read(
    reads: Reads, topic: TopicState, partition: int, offset: int, bounds: Bounds
) -> MessageSlice:
    """The messages from an offset that is in the log, up to the bounds.

    The first message is returned even if it is larger than the bound of bytes: otherwise no reader
    could get past it.
    """
    end = topic.next_offset(partition)
    stop = min(end, bounds.end_offset) if bounds.end_offset else end
    found: list[PackedMessages] = []
    size = 0
    at, left, bytes_left = offset, bounds.messages or _NO_LIMIT, bounds.bytes or _NO_LIMIT
    for block, block_end in _blocks(reads, topic, partition, offset, stop):
        if bounds.end_ms and block.appended_at_ms >= bounds.end_ms:
            break
        start = max(at, block.first_offset)
        taken, at = _take(
            block, start, block_end, messages_max=left, bytes_max=bytes_left, is_first=not found
        )
        for each in taken:
            found.append(each)
            left -= each.count
            size = _size(each)
            bytes_left -= size
        # A block as large as the last one would not fit, and it costs as much to read as to send.
        if at < block_end or not left or bytes_left < size:
            break
    else:
        at = max(offset, stop)
    return MessageSlice(
        partition,
        found,
        at,
        topic.first_offset(partition),
        end,
        is_closed=topic.record.is_closed,
    )


def _blocks(
    reads: Reads, topic: TopicState, partition: int, offset: int, stop: int
) -> Iterator[tuple[MessageBlock, int]]:
    """The blocks from an offset on, and up to which offset each belongs to the topic."""
    at = offset
    has_gaps = topic.settings.keeps_last_per_key
    for prefix, _, last in topic.stretches(partition):
        end = min(last, stop)
        if at >= end:
            continue
        bound = block_key(prefix, (1 << 64) - 1)
        for key, value in reads.walk(Family.LOG_BLOCKS, block_key(prefix, at), bound):
            block = MessageBlock(key, value)
            invariant(block.first_offset <= at or has_gaps, "I15", topic=topic.name, missing=at)
            if block.first_offset >= end:
                break
            at = min(block.end_offset, end)
            yield block, at
            if at == end:
                break
        invariant(at == end or has_gaps, "I15", topic=topic.name, missing=at)


def _take(
    block: MessageBlock, at: int, end: int, *, messages_max: int, bytes_max: int, is_first: bool
) -> tuple[list[PackedMessages], int]:
    """Messages of a block from offset `at` on, and the offset to go on at.

    A block that has lost messages gives one piece for each stretch that it still has.
    """
    pieces: list[PackedMessages] = []
    for start, stop in _stretches(block, at, end):
        count = min(stop - start, messages_max)
        position = start - block.first_offset
        fitting = block.block.fitting(position, count, bytes_max, extra=ITEM_WIRE_BYTES)
        if not fitting and is_first and not pieces and count:
            fitting = 1
        if fitting:
            piece = _packed(block, position, fitting)
            pieces.append(piece)
            messages_max -= fitting
            bytes_max -= _size(piece)
        if fitting < stop - start:
            return pieces, start + fitting
    return pieces, end


def _stretches(block: MessageBlock, at: int, end: int) -> Iterator[tuple[int, int]]:
    """The offsets between two that the block has messages of, as start and stop."""
    positions = block.block.positions
    if isinstance(positions, range):
        yield at, end
        return
    start = stop = -1
    for position in positions:
        offset = block.first_offset + position
        if not at <= offset < end:
            continue
        if offset != stop:
            if stop > start >= 0:
                yield start, stop
            start = offset
        stop = offset + 1
    if stop > start >= 0:
        yield start, stop


def _packed(block: MessageBlock, position: int, count: int) -> PackedMessages:
    contents = block.block
    ends, payloads = contents.packed(position, count)
    keys, attributes = contents.details(position, count) if contents.has_details else ((), ())
    first = block.first_offset + position
    return PackedMessages(
        first,
        count,
        block.appended_at_ms,
        shifted(block.first_id, position),
        block.sequence + position,
        ends,
        payloads,
        keys,
        attributes,
    )


def _size(piece: PackedMessages) -> int:
    """What messages count against a bound of bytes."""
    details = sum(map(len, piece.keys)) + sum(map(len, piece.attributes))
    return len(piece.payloads) + details + ITEM_WIRE_BYTES * piece.count


# --- one message ----------------------------------------------------------------------------------


def find_id(reads: Reads, topic: TopicState, message_id: bytes) -> tuple[int, int] | None:
    """Partition and offset of a message of the topic; None if it has none of that id."""
    number = int.from_bytes(message_id)

    def distance(block: LogBlock) -> int:
        return number - int.from_bytes(read_message_head(block.value)[0])

    for partition in range(topic.partitions):
        offset = _find(reads, topic, partition, distance)
        if offset is not None:
            return partition, offset
    return None


def find_sequence(reads: Reads, topic: TopicState, partition: int, sequence: int) -> int:
    """The offset of the first message of a partition whose sequence is `sequence` or greater."""

    def distance(block: LogBlock) -> int:
        return sequence - read_message_head(block.value)[1]

    start = topic.search(reads, partition, lambda block: distance(block) < _span(block))
    found = _find(reads, topic, partition, distance)
    return start if found is None else found


def _find(
    reads: Reads, topic: TopicState, partition: int, distance: Callable[[LogBlock], int]
) -> int | None:
    """The offset of a message that is `distance` behind the first of its block; None if no block
    has it. Ids and sequences rise with the offsets."""
    start = topic.search(reads, partition, lambda block: distance(block) < _span(block))
    if start == topic.next_offset(partition):
        return None
    block = topic.block_from(reads, partition, start)
    if block is None or distance(block) < 0:
        return None
    offset = block.first_offset + distance(block)
    is_kept = topic.first_offset(partition) <= offset < topic.next_offset(partition)
    return offset if is_kept else None


def _span(block: LogBlock) -> int:
    return block.end_offset - block.first_offset
