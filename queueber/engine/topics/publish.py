"""Publish: append messages to many topics at once, all of them or none.

What a publication demands of its topic is checked first; see `conditions.py`. A publication that is
refused changes nothing, and neither does one that a producer repeats.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from queueber.db.records.messages import read_message_head
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.append import append, choose
from queueber.engine.topics.conditions import check_conditions, check_expected, only_partition
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.ids import ItemId, reference, shifted, split_reference
from queueber.model import Added, NewMessages, Publication, Published


def publish(
    tx: Transaction[Any], topics: Topics, to: Iterable[tuple[TopicState, Publication]]
) -> list[Published]:
    """Append the messages of each publication to its topic."""
    return [_publish(tx, topics, topic, each) for topic, each in to]


def publish_first(
    tx: Transaction[Any], topics: Topics, topic: TopicState, first: Publication | None
) -> Published:
    """What a new topic begins with."""
    if first is None:
        return _told(tx, topics, topic, Published(tx.now_ms, (), (), (), ()), 0)
    return _publish(tx, topics, topic, first)


def _publish(
    tx: Transaction[Any], topics: Topics, topic: TopicState, publication: Publication
) -> Published:
    messages = publication.messages
    call = None
    if publication.producer is not None:
        call = topic.memory.producers.call(
            tx.join(topic),
            publication.producer,
            messages.payloads,
            number_decides=publication.number_decides,
        )
        if call.repeated is not None:
            return _told(tx, topics, topic, _published_before(tx, topic, call.repeated), call.last)
    check_conditions(tx, topic, publication)
    if messages.dedup_ids and any(messages.dedup_ids):
        published, references = _publish_new(tx, topics, topic, publication)
    else:
        published = _append(tx, topics, topic, messages, publication)
        references = _references(published) if call is not None else ()
    if call is not None:
        call.store(tx.join(topic), Added(references, published.duplicates))
    if publication.text_sequence and not topic.record_in(tx).is_closed:
        topic.change(tx, text_sequence=publication.text_sequence)
    if publication.closes:
        topics.close(tx, topic)
    return _told(tx, topics, topic, published, 0 if call is None else call.last)


def _told(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    published: Published,
    last_number: int,
) -> Published:
    """The answer, with how the topic is after the publication."""
    record = topic.record_in(tx)
    if len(record.logs) == 1:
        published.end_offset = topic.log(0).head_in(tx).next_offset
        published.origin = topics.origin(topic)
    published.last_number = last_number
    published.is_closed = record.is_closed
    return published


def _append(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    messages: NewMessages,
    publication: Publication,
) -> Published:
    only = only_partition(topic, publication)
    if only is not None:
        check_expected(tx, topic, only, publication)
    return append(tx, topics, topic, messages, only)


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
    chosen = messages if len(new) == len(messages.payloads) else choose(messages, new)
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
