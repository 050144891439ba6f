"""Streaming reads of topics: in each micro-batch exactly the messages between two offsets.

Spark's checkpoint holds the offset of each partition: `{"0": 120, "1": 80}`. If a query goes on
after messages were deleted unread, `missed` says beside them how many so far.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from queueber import Topic
from queueber.errors import InvalidArgument
from queueber.model import TopicInfo
from queueber.spark.read.messages import read_part
from queueber.spark.read.topic_ranges import (
    MessagePart,
    Offsets,
    describe,
    kept,
    offsets_of,
    to_parts,
)
from queueber.spark.topic_options import TopicReadOptions

Checkpoint = dict[str, int]

_MISSED = "missed"


class MessagesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic as a stream."""

    def __init__(self, options: TopicReadOptions, wanted: Sequence[str]) -> None:
        self._options = options
        self._wanted = wanted
        self._target: Offsets | None = None
        """Where a query ends that reads what is available now."""
        self._has_group = False
        with options.connected() as topic:
            describe(topic)  # a server or topic that is not there is an error at the start

    def initialOffset(self) -> Checkpoint:  # noqa: N802  Spark's name
        with self._options.connected() as topic:
            places = self._options.start
            return _checkpoint(offsets_of(topic, describe(topic), places, "startingOffsets"))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        count = self._options.max_offsets
        return ReadAllAvailable() if count is None else ReadMaxRows(count)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        self._target = self._ends()

    def reportLatestOffset(self) -> Checkpoint:  # noqa: N802  Spark's name
        return _checkpoint(self._ends())

    def latestOffset(self, start: Checkpoint, limit: ReadLimit) -> Checkpoint:  # noqa: N802
        with self._options.connected() as topic:
            info = describe(topic)
        begin = self._begin(start, info)
        ends = _ends_of(info)
        first = kept(self._options, info, begin, ends)
        missed = sum(first[each] - begin[each] for each in first)
        if self._target is not None:
            ends = {each: max(at, self._target.get(each, 0)) for each, at in first.items()}
        if isinstance(limit, ReadMaxRows):
            ends = limited(first, ends, limit.max_rows)
        return _checkpoint(ends, start.get(_MISSED, 0) + missed)

    def partitions(self, start: Checkpoint, end: Checkpoint) -> Sequence[InputPartition]:
        last = {int(each): at for each, at in end.items() if each != _MISSED}
        with self._options.connected() as topic:
            info = describe(topic)
            self._make_group(topic)
        begin = self._begin(start, info)
        first = {each: at for each, at in begin.items() if each in last}
        return to_parts(kept(self._options, info, first, last), last, self._options.splits)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, MessagePart)
        return read_part(self._options, partition, self._wanted)

    def commit(self, end: Checkpoint) -> None:
        if self._options.group is None:
            return
        with self._options.connected() as topic:
            for each, offset in end.items():
                if each != _MISSED:
                    topic.ack(self._options.group, offset, partition=int(each))

    def _make_group(self, topic: Topic) -> None:
        """From the first micro-batch on, the group holds messages back for this query."""
        if self._options.group is not None and not self._has_group:
            topic.create_group(self._options.group, kind="ordered")
            self._has_group = True

    def _ends(self) -> Offsets:
        with self._options.connected() as topic:
            return _ends_of(describe(topic))

    def _begin(self, start: Checkpoint, info: TopicInfo) -> Offsets:
        """Where to go on. A partition that is new to the query is read from its beginning."""
        ends = _ends_of(info)
        for each, offset in start.items():
            if each != _MISSED and offset > ends.get(int(each), -1):
                end = ends.get(int(each))
                has = "there is no such partition" if end is None else f"it ends at {end}"
                raise InvalidArgument(
                    f"the checkpoint is at offset {offset} of partition {each}, but of topic "
                    f"{info.name!r} {has}: it is another topic than the one that was read, or was "
                    "deleted meanwhile; start with a new checkpoint"
                )
        return {each: start.get(str(each), 0) for each in ends}


def limited(first: Offsets, ends: Offsets, count: int) -> Offsets:
    """Where to end so that there are at most `count` messages. Each partition gets its share: one
    with twice as many messages ahead twice as many."""
    ahead = {each: ends[each] - first[each] for each in ends}
    total = sum(ahead.values())
    if total <= count:
        return ends
    shares = {each: count * size // total for each, size in ahead.items()}
    left = count - sum(shares.values())
    # What rounding leaves goes to those that have most ahead, so even 1 message is read.
    for each in sorted(ahead, key=lambda each: shares[each] - ahead[each])[:left]:
        shares[each] += 1
    return {each: first[each] + share for each, share in shares.items()}


def _ends_of(info: TopicInfo) -> Offsets:
    return {number: each.next_offset for number, each in enumerate(info.partitions)}


def _checkpoint(offsets: Offsets, missed: int = 0) -> Checkpoint:
    made = {str(each): offset for each, offset in sorted(offsets.items())}
    return {**made, _MISSED: missed} if missed else made
