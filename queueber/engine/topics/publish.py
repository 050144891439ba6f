"""Publish: append messages to many topics at once, all of them or none.

A message with a key goes to partition CRC-32(key) modulo the number of partitions, so messages with
one key stay in order. Messages of a call without a key go together to one partition, which changes
from call to call.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any
from zlib import crc32

from queueber.db.records.blocks import NewBlock, make_blocks
from queueber.db.records.log import LogHead
from queueber.db.records.messages import encode_messages, read_message_head
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import append_block
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import FailedPrecondition, InvalidArgument, ResourceExhausted
from queueber.ids import ItemId, ids_up_to, reference, shifted, split_reference
from queueber.model import Added, GroupKind, IdRuns, NewItems, NewMessages, Publication, Published


def publish(
    tx: Transaction[Any], topics: Topics, to: Iterable[tuple[TopicState, Publication]]
) -> list[Published]:
    """Append the messages of each publication to its topic."""
    return [_publish(tx, topics, topic, each) for topic, each in to]


def partition_of(key: str, partitions: int) -> int:
    """Where messages with a key go. Part of the protocol: never change it."""
    return crc32(key.encode()) % partitions


def _publish(
    tx: Transaction[Any], topics: Topics, topic: TopicState, publication: Publication
) -> Published:
    messages = publication.messages
    call = None
    if publication.producer is not None:
        call = topic.memory.producers.call(tx.join(topic), publication.producer, messages.payloads)
        if call.repeated is not None:
            return _published_before(tx, topic, call.repeated)
    if messages.payloads or not publication.closes:  # closing may be repeated
        _check_open(tx, topic)
    if messages.dedup_ids and any(messages.dedup_ids):
        published, references = _publish_new(tx, topics, topic, publication)
    else:
        published = _append(tx, topics, topic, messages, publication)
        references = _references(published) if call is not None else ()
    if call is not None:
        call.store(tx.join(topic), Added(references, published.duplicates))
    if publication.closes:
        topics.close(tx, topic)
    return published


def _only_partition(topic: TopicState, publication: Publication) -> int | None:
    """The partition that is named, or the only one; None: each message has its own."""
    if publication.partition is not None:
        topic.check_partition(publication.partition)
        return publication.partition
    if topic.partitions == 1:
        return 0
    if publication.expected_offset is not None:
        raise InvalidArgument(
            f"expected_offset: topic {topic.name!r} has {topic.partitions} partitions; name the "
            "one that it is about"
        )
    return None


def _check_open(tx: Transaction[Any], topic: TopicState) -> None:
    if topic.record_in(tx).is_closed:
        tail = topic.log(0).head_in(tx).next_offset
        raise FailedPrecondition(
            f"topic {topic.name!r} is closed, and takes no more messages", tail=tail
        )


def _references(published: Published) -> list[ItemId]:
    return [reference(p, o) for p, o in zip(published.partitions, published.offsets, strict=True)]


# --- messages that were published before ----------------------------------------------------------


def _published_before(tx: Transaction[Any], topic: TopicState, repeated: Added) -> Published:
    """The answer to a call that was sent again."""
    places = [split_reference(each) for each in repeated.ids]
    found = [_look_up(tx, topic, partition, offset) for partition, offset in places]
    return Published(
        max((at_ms for at_ms, _, _ in found), default=0),
        [partition for partition, _ in places],
        [offset for _, offset in places],
        [message_id for _, message_id, _ in found],
        [sequence for _, _, sequence in found],
        repeated.duplicates,
        is_repeat=True,
    )


def _look_up(
    tx: Transaction[Any], topic: TopicState, partition: int, offset: int
) -> tuple[int, bytes, int]:
    """When a message was published, its id and sequence; zeros if it is deleted."""
    if not topic.first_offset(partition) <= offset < topic.next_offset(partition):
        return 0, bytes(16), 0
    block = topic.block_from(tx.store, partition, offset)
    if block is None or block.first_offset > offset:
        return 0, bytes(16), 0
    at = offset - block.first_offset
    first_id, sequence = read_message_head(block.value)
    return block.appended_at_ms, shifted(first_id, at), sequence + at


def _publish_new(
    tx: Transaction[Any], topics: Topics, topic: TopicState, publication: Publication
) -> tuple[Published, Sequence[ItemId]]:
    """Publish those whose dedup id is not known; returns where all of them are."""
    messages, part = publication.messages, tx.join(topic)
    lookup = topic.memory.keys.look_up(part, messages.dedup_ids, topic.settings.dedup_window_ms)
    new = [at for at, first in enumerate(lookup.firsts) if first is None]
    chosen = messages if len(new) == len(messages.payloads) else _choose(messages, new)
    places: list[ItemId] = [ItemId(b"")] * len(lookup.firsts)
    if new:
        published = _append(tx, topics, topic, chosen, publication)
        stored = list(zip(new, _references(published), strict=True))
        # In order of their places, which is not that of the call if it goes to several partitions.
        lookup.store(part, sorted(stored, key=itemgetter(1)))
        for at, place in stored:
            places[at] = place
        if len(new) == len(places):
            return published, places
    for at, first in enumerate(lookup.firsts):
        if first is not None:
            places[at] = places[first] if isinstance(first, int) else first
    part.counters.duplicates_total += len(places) - len(new)
    appended = iter(zip(published.ids, published.sequences, strict=True)) if new else iter(())
    known: dict[ItemId, tuple[bytes, int]] = {places[at]: next(appended) for at in new}
    for place in places:
        if place not in known:
            _, message_id, sequence = _look_up(tx, topic, *split_reference(place))
            known[place] = (message_id, sequence)
    split = [split_reference(each) for each in places]
    return (
        Published(
            tx.now_ms,
            [partition for partition, _ in split],
            [offset for _, offset in split],
            [known[each][0] for each in places],
            [known[each][1] for each in places],
            [first is not None for first in lookup.firsts],
        ),
        places,
    )


def _choose(messages: NewMessages, positions: Sequence[int]) -> NewMessages:
    """Only the messages at these positions."""
    return NewMessages(
        [messages.payloads[at] for at in positions],
        [messages.keys[at] for at in positions] if messages.keys else (),
        [messages.attributes[at] for at in positions] if messages.attributes else (),
    )


# --- appending ------------------------------------------------------------------------------------


def _append(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    messages: NewMessages,
    publication: Publication,
) -> Published:
    count = len(messages.payloads)
    only = _only_partition(topic, publication)
    if only is not None:
        _check_expected(tx, topic, only, publication)
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
        chosen = _choose(messages, positions)
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


def _check_expected(
    tx: Transaction[Any], topic: TopicState, partition: int, publication: Publication
) -> None:
    expected = publication.expected_offset
    if expected is None:
        return
    tail = topic.log(partition).head_in(tx).next_offset
    if expected != tail:
        raise FailedPrecondition(
            f"expected_offset is {expected}, but partition {partition} of topic {topic.name!r} "
            f"goes on at {tail}",
            tail=tail,
        )


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
