"""Append: messages to the partitions of a topic, behind those that are there.

A message with a key goes to partition CRC-32(key) modulo the number of partitions, so messages with
one key stay in order. Messages of a call without a key go together to one partition, which changes
from call to call.
"""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from queueber.db.records.blocks import NewBlock, make_blocks
from queueber.db.records.log import LogHead
from queueber.db.records.messages import encode_messages
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import append_block
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import ResourceExhausted
from queueber.ids import ItemId, ids_up_to, shifted
from queueber.model import GroupKind, IdRuns, NewItems, NewMessages, Published


def partition_of(key: str, partitions: int) -> int:
    """Where messages with a key go. Part of the protocol: never change it."""
    return digest_of(key) % partitions


def digest_of(key: str) -> int:
    """What is left of a key, of whatever length, to choose the partition."""
    return crc32(key.encode())


def choose(messages: NewMessages, positions: Sequence[int]) -> NewMessages:
    """Only the messages at these positions."""
    return NewMessages(
        [messages.payloads[at] for at in positions],
        [messages.keys[at] for at in positions] if messages.keys else (),
        [messages.attributes[at] for at in positions] if messages.attributes else (),
    )


def append(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    messages: NewMessages,
    only: int | Sequence[int] | None,
) -> Published:
    """Append to one partition, or each message to its own; None: to that of its key."""
    count = len(messages.payloads)
    if not count:
        return Published(tx.now_ms, (), (), (), ())
    last = tx.ids.mint_last(count, tx.now_ms)
    first_sequence = topics.sequences.take(tx, count, last)
    partitions = only if only is not None else _partitions_of(topic, messages, last)
    if isinstance(partitions, int):
        offset = _append_to(tx, topic, partitions, messages, last, first_sequence)
        return Published(
            tx.now_ms,
            [partitions] * count,
            range(offset, offset + count),
            IdRuns([(last, count)]),
            range(first_sequence, first_sequence + count),
        )
    return _spread(tx, topic, messages, partitions, last, first_sequence)


def _spread(
    tx: Transaction[Any],
    topic: TopicState,
    messages: NewMessages,
    partitions: Sequence[int],
    last: ItemId,
    first_sequence: int,
) -> Published:
    """Append to several partitions. Ids and sequences follow each other within a partition."""
    count = len(partitions)
    offsets, order = [0] * count, [0] * count
    done = 0
    for partition in sorted(set(partitions)):
        positions = [at for at, each in enumerate(partitions) if each == partition]
        chosen = choose(messages, positions)
        done += len(positions)
        of_these = shifted(last, done - count)
        sequence = first_sequence + done - len(positions)
        offset = _append_to(tx, topic, partition, chosen, of_these, sequence)
        for number, at in enumerate(positions):
            offsets[at] = offset + number
            order[at] = done - len(positions) + number
    ids = ids_up_to(last, count)
    return Published(
        tx.now_ms,
        partitions,
        offsets,
        [ids[each] for each in order],
        [first_sequence + each for each in order],
    )


def _partitions_of(topic: TopicState, messages: NewMessages, last: ItemId) -> int | list[int]:
    """The partition of each message, or the one of all."""
    total = topic.partitions
    without_key = crc32(last) % total
    if not any(messages.keys):
        return without_key
    chosen = [partition_of(key, total) if key else without_key for key in messages.keys]
    return chosen[0] if len(set(chosen)) == 1 else chosen


def _append_to(
    tx: Transaction[Any],
    topic: TopicState,
    partition: int,
    messages: NewMessages,
    last: ItemId,
    first_sequence: int,
) -> int:
    """Append to one partition; returns the offset of the first message."""
    log = topic.log(partition)
    before = log.head_in(tx)
    count = len(messages.payloads)
    items = NewItems(messages.payloads, keys=messages.keys, attributes=messages.attributes)
    blocks = list(make_blocks(items))
    _check_room(topic, before, count, blocks)
    head = before
    for block in blocks:
        first_id = shifted(last, 1 - count + block.start)
        body = encode_messages(first_id, first_sequence + block.start, block.value)
        head = append_block(tx, log, body, block.stop - block.start)
    if topic.settings.keeps_last_per_key and messages.keys:
        topic.memory.compaction.replace(
            tx.join(topic), partition, messages, before.next_offset, topic.settings.tombstone_ms
        )
    is_bridged = any(each.kind is GroupKind.QUEUE for each in topic.groups.values())
    due_ms = tx.now_ms if is_bridged else topic.trim_due_ms(partition, tx.now_ms, head)
    tx.look_at(topic, due_ms)
    return before.next_offset


def _check_room(topic: TopicState, head: LogHead, count: int, blocks: Sequence[NewBlock]) -> None:
    settings = topic.settings
    if not settings.refuses_when_full:
        return
    kept, limit = head.next_offset - head.first_offset, settings.retention_messages
    if limit and kept + count > limit:
        raise ResourceExhausted(
            f"topic {topic.name!r} has {kept} messages in a partition; {count} more would pass its "
            f"limit of {limit}"
        )
    size, limit = sum([len(block.value) for block in blocks]), settings.retention_bytes
    if limit and head.kept_bytes + size > limit:
        raise ResourceExhausted(
            f"topic {topic.name!r} has {head.kept_bytes} bytes in a partition; {size} more would "
            f"pass its limit of {limit}"
        )
