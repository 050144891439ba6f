"""Offsets of a topic's partitions: where a read begins and ends, and which task reads what.

Every message is read by exactly one task.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from queueber import Topic
from queueber.errors import InvalidArgument, NotFound, OutOfRange
from queueber.model import Column, Position, Start, TopicInfo
from queueber.spark.places import Places
from queueber.spark.read.plan import split_offsets
from queueber.spark.topic_options import TopicReadOptions

Offsets = dict[int, int]
"""An offset of each partition."""

_log = logging.getLogger("queueber.spark")
_NO_COLUMNS = (Column.CONTENTS, Column.KEYS, Column.ATTRIBUTES)


class MessagesGone(OutOfRange):
    """Messages that were to be read have been deleted."""


@dataclass
class MessagePart(InputPartition):
    """The messages of one task: those of a partition from `first` to before `end`."""

    partition: int
    first: int
    end: int


def describe(topic: Topic) -> TopicInfo:
    try:
        return topic.describe()
    except NotFound as error:
        raise NotFound(f"option 'topic': {error}") from None


def offsets_of(topic: Topic, info: TopicInfo, places: Places, option: str) -> Offsets:
    """The offset of each place. One that is deleted stays; one past the end is refused."""
    count = len(info.partitions)
    for partition in places.named:
        if partition >= count:
            raise InvalidArgument(
                f"option {option!r}: topic {info.name!r} has {count} partitions, from 0 on; there "
                f"is no partition {partition}"
            )
    return {
        partition: _offset_of(topic, info, partition, places.of(partition), option)
        for partition in range(count)
    }


def _offset_of(topic: Topic, info: TopicInfo, partition: int, place: Position, option: str) -> int:
    reach = info.partitions[partition]
    match place.start:
        case Start.EARLIEST:
            return reach.first_offset
        case Start.LATEST:
            return reach.next_offset
        case Start.TIME:
            return offset_at(topic, partition, place.value)
    if place.value > reach.next_offset:
        raise OutOfRange(
            f"option {option!r}: offset is {place.value}; partition {partition} of topic "
            f"{info.name!r} has messages from {reach.first_offset} up to {reach.next_offset}",
            first=reach.first_offset,
            next=reach.next_offset,
        )
    return place.value


def offset_at(topic: Topic, partition: int, at_ms: int) -> int:
    """The offset of the first message that was published then or later."""
    position = Position(Start.TIME, at_ms)
    page = topic.read(partition, start=position, limit=1, without=_NO_COLUMNS)
    return page.columns.pieces[0].offset if len(page) else page.next_offset


def to_parts(first: Offsets, end: Offsets, splits: int) -> list[MessagePart]:
    """The messages between two offsets of each partition, as tasks of about the same length."""
    total = sum(max(0, end[each] - first[each]) for each in end)
    parts: list[MessagePart] = []
    for partition, stop in end.items():
        count = stop - first[partition]
        if count > 0:
            share = max(1, splits * count // total)
            ranges = split_offsets(first[partition], stop, share)
            parts += [MessagePart(partition, a, b) for a, b in ranges]
    return parts


def kept(
    options: TopicReadOptions, info: TopicInfo, first: Offsets, end: Mapping[int, int]
) -> Offsets:
    """Where each partition can be read from. What is deleted is an error, or a warning."""
    starts: Offsets = {}
    for partition, offset in first.items():
        kept_from, stop = info.partitions[partition].first_offset, end[partition]
        if offset < min(kept_from, stop):
            tell_missed(options, partition, offset, min(kept_from, stop) - offset)
        starts[partition] = max(offset, kept_from)
    return starts


def tell_missed(options: TopicReadOptions, partition: int, first: int, count: int) -> None:
    """`MessagesGone`, or a line in the log if the options say so."""
    what = (
        f"{count} messages of topic {options.topic!r} from offset {first} of partition {partition} "
        "on were deleted before they were read"
    )
    if options.fails_on_loss:
        raise MessagesGone(
            f"{what}; let the topic keep messages longer, or set the option 'failOnDataLoss' to "
            "false to go on without them",
            first=first,
            next=first + count,
        )
    _log.warning("%s", what)
