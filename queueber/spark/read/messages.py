"""Batch reads of topics: the messages between two places of each partition.

The offsets of both places are fixed when Spark plans the read. Messages never change, so tasks read
them side by side, and later actions on the DataFrame read the same ones.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from queueber import Topic
from queueber.errors import OutOfRange
from queueber.limits import READ_ITEMS_MAX
from queueber.spark.read import plan
from queueber.spark.read.topic_ranges import (
    MessagePart,
    Offsets,
    describe,
    kept,
    offset_at,
    offsets_of,
    tell_missed,
    to_parts,
)
from queueber.spark.topic_options import TopicReadOptions
from queueber.tables.messages import MESSAGES, messages_page, unwanted_columns

_COMPARISONS = (
    datasource.GreaterThan,
    datasource.GreaterThanOrEqual,
    datasource.LessThan,
    datasource.LessThanOrEqual,
)
_NEVER_NULL = frozenset(MESSAGES.names) - {"key"}


class MessagesReader(DataSourceReader):
    """Reads a topic as a table."""

    def __init__(self, options: TopicReadOptions, wanted: Sequence[str]) -> None:
        self._options = options
        self._wanted = wanted
        self._partitions: set[int] | None = None
        """Those that filters leave; None: all."""
        self._offsets = _Bounds()
        self._times_ms = _Bounds()

    # --- filters that Spark leaves to the reader --------------------------------------------------

    @property
    def pushFilters(self) -> plan.PushedFilters:  # noqa: N802  Spark's name
        return plan.PushedFilters(self._push, is_on=self._options.push_filters)

    def _push(self, condition: Filter) -> bool:
        if isinstance(condition, datasource.IsNotNull):
            return ".".join(condition.attribute) in _NEVER_NULL
        column, values = plan.wanted_values(condition)
        if column == "partition":
            chosen = {each for each in values if isinstance(each, int)}
            self._partitions = chosen if self._partitions is None else self._partitions & chosen
            return True
        if isinstance(condition, (*_COMPARISONS, datasource.EqualTo)):
            column = ".".join(condition.attribute)
            if column == "offset" and isinstance(condition.value, int):
                self._offsets.narrow(condition, condition.value, condition.value + 1)
                return True
            if column == "timestamp" and _has_zone(condition.value):
                # Times of messages are whole milliseconds.
                micros = round(condition.value.timestamp() * 1_000_000)
                self._times_ms.narrow(condition, -(-micros // 1000), micros // 1000 + 1)
                return True
        return False

    # --- planning and reading ---------------------------------------------------------------------

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with options.connected() as topic:
            info = describe(topic)
            first = offsets_of(topic, info, options.start, "startingOffsets")
            end = offsets_of(topic, info, options.end, "endingOffsets")
            if self._partitions is not None:
                first = {each: at for each, at in first.items() if each in self._partitions}
                end = {each: end[each] for each in first}
            first, end = self._narrowed(topic, first, end)
            first = kept(options, info, first, end)
        return to_parts(first, end, options.splits)

    def _narrowed(self, topic: Topic, first: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Offsets and times as the filters leave them."""
        first = {each: max(at, self._offsets.first) for each, at in first.items()}
        end = {each: self._offsets.before(at) for each, at in end.items()}
        times = self._times_ms
        if times.first:
            first = {e: max(at, offset_at(topic, e, times.first)) for e, at in first.items()}
        if times.end is not None:
            end = {e: min(at, offset_at(topic, e, max(0, times.end))) for e, at in end.items()}
        return first, end

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, MessagePart)
        return read_part(self._options, partition, self._wanted)


class _Bounds:
    """The numbers that comparisons leave."""

    def __init__(self) -> None:
        self.first = 0
        self.end: int | None = None

    def narrow(self, condition: Filter, at_least: int, more: int) -> None:
        """`at_least` is the first number that is not less than the value, `more` the first that is
        greater."""
        match condition:
            case datasource.GreaterThan():
                self.first = max(self.first, more)
            case datasource.GreaterThanOrEqual():
                self.first = max(self.first, at_least)
            case datasource.LessThan():
                self.end = self.before(at_least)
            case datasource.LessThanOrEqual():
                self.end = self.before(more)
            case _:
                self.first = max(self.first, at_least)
                self.end = self.before(more)

    def before(self, end: int) -> int:
        return end if self.end is None else min(end, self.end)


def _has_zone(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def read_part(
    options: TopicReadOptions, part: MessagePart, wanted: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The messages of a part, page by page. What is deleted meanwhile is an error, or a warning."""
    offset, without = part.first, unwanted_columns(wanted)
    with options.connected() as topic:
        while offset < part.end:
            page = topic.read(
                part.partition,
                start=offset,
                moves=True,
                end_offset=part.end,
                limit=READ_ITEMS_MAX,
                without=without,
            )
            if page.end_offset < part.end:
                raise OutOfRange(
                    f"partition {part.partition} of topic {options.topic!r} ends at "
                    f"{page.end_offset}, before offset {part.end}, which was there when the read "
                    "was planned: the topic was deleted and created again",
                    first=page.first_kept,
                    next=page.end_offset,
                )
            if page.missed:
                tell_missed(options, part.partition, offset, min(page.missed, part.end - offset))
            if len(page):
                yield messages_page(page.columns, wanted)
            offset = page.next_offset
