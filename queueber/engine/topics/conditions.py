"""Conditions: what a publication demands of its topic, in the order in which it is checked.

An error has numbers for programs: `tail` is where the topic goes on, and another number says which
condition failed.
"""

from typing import Any

from queueber.db.records.topics import TopicRecord
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import FailedPrecondition, InvalidArgument
from queueber.model import RAW_TYPE, Publication, bare_type

_SHOWN = 200
"""Characters of a text in an error."""


def check_conditions(tx: Transaction[Any], topic: TopicState, publication: Publication) -> None:
    """Refuse messages that the topic does not take. The expected offset is checked last, when the
    partition is known."""
    record = topic.record_in(tx)
    if record.is_closed:
        _check_open(tx, topic, publication)
        return  # it is closed again, which changes nothing
    if publication.content_type:
        _check_content_type(tx, topic, record, publication.content_type)
    if publication.text_sequence:
        _check_text_sequence(tx, topic, record, publication.text_sequence)
    if publication.topic_number:
        check_number(topic, publication.topic_number)
    if publication.schema_version != record.settings.schema_version:
        _check_schema(topic, record, publication)


def check_number(topic: TopicState, number: int) -> None:
    """The topic must be the one that a caller knows, not one of the same name; 0: any."""
    if number not in (0, topic.queue_id):
        raise FailedPrecondition(
            f"topic_number is {number}, but topic {topic.name!r} was created again, and has number "
            f"{topic.queue_id}",
            topic_number=topic.queue_id,
        )


def check_alias(name: str, alias: str | None) -> None:
    """An alias is a second name."""
    if alias == name:
        raise InvalidArgument(f"alias is {alias!r}, which is the name of the topic; give another")


def check_without_sources(topic: TopicState, record: TopicRecord, change: str) -> None:
    """Refuse what could refuse events: they are written with the changes that they tell of."""
    if record.sources:
        raise FailedPrecondition(
            f"topic {topic.name!r} cannot {change}: {record.sources} sources publish to it; drop "
            "its sources first",
            sources=record.sources,
        )


def _check_open(tx: Transaction[Any], topic: TopicState, publication: Publication) -> None:
    """Closing may be repeated, except by a new call of a producer: that would be stored."""
    only_closes = publication.closes and not publication.messages.payloads
    if only_closes and publication.producer is None:
        return
    raise FailedPrecondition(
        f"topic {topic.name!r} is closed, and takes no more messages",
        tail=_tail(tx, topic),
        closed=1,
    )


def _check_content_type(
    tx: Transaction[Any], topic: TopicState, record: TopicRecord, given: str
) -> None:
    # A topic without a type has any bytes.
    if bare_type(given) != (bare_type(record.content_type) or RAW_TYPE):
        raise FailedPrecondition(
            f"content_type is {given!r}, but topic {topic.name!r} has "
            + (repr(record.content_type) if record.content_type else "none"),
            tail=_tail(tx, topic),
            content_type=1,
        )


def _check_text_sequence(
    tx: Transaction[Any], topic: TopicState, record: TopicRecord, given: str
) -> None:
    if given.encode() <= record.text_sequence.encode():
        raise FailedPrecondition(
            f"text_sequence is {given[:_SHOWN]!r}, but topic {topic.name!r} had "
            f"{record.text_sequence[:_SHOWN]!r} already; give a greater one, byte by byte",
            tail=_tail(tx, topic),
            text_sequence=1,
        )


def _check_schema(topic: TopicState, record: TopicRecord, publication: Publication) -> None:
    if not publication.messages.payloads:
        return
    version, given = record.settings.schema_version, publication.schema_version
    raise FailedPrecondition(
        f"schema_version is {given}, but messages of topic {topic.name!r} must be checked against "
        f"schema {version}"
        if version
        else f"schema_version is {given}, but topic {topic.name!r} has no schema",
        schema_version=version,
    )


def _tail(tx: Transaction[Any], topic: TopicState) -> int:
    return topic.log(0).head_in(tx).next_offset


# --- the partition --------------------------------------------------------------------------------


def only_partition(topic: TopicState, publication: Publication) -> int | None:
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


def check_expected(
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
