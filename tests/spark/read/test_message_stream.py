"""Streaming reads of topics: every message once, and what was deleted unread is told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery

import queueber
from queueber import OutOfRange
from queueber.spark.read.message_stream import MessagesStreamReader, limited
from queueber.spark.topic_options import topic_read_options
from queueber.testing import ServerProcess
from tests.spark.read.test_messages import fill


def run(
    spark: SparkSession,
    server: ServerProcess,
    topic: queueber.Topic,
    folder: Path,
    **options: object,
) -> StreamingQuery:
    """Write what is available to files."""
    reading = spark.readStream.format("queueber").option("address", server.address)
    reading = reading.option("topic", topic.name).schema("partition int, offset long")
    for name, value in options.items():
        reading = reading.option(name, str(value))
    writing = reading.load().writeStream.format("parquet").trigger(availableNow=True)
    writing = writing.option("checkpointLocation", str(folder / "checkpoint"))
    query = writing.start(str(folder / "sink"))
    query.awaitTermination(120)
    return query


def sink(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    frame = spark.read.schema("partition int, offset long").parquet(str(folder / "sink"))
    return sorted((row.partition, row.offset) for row in frame.collect())


def test_query_that_is_started_again_has_every_message_once(
    spark: SparkSession,
    server: ServerProcess,
    client: queueber.Client,
    topic: queueber.Topic,
    tmp_path: Path,
) -> None:
    """In micro-batches as large as allowed, and with a partition that is added meanwhile."""
    fill(topic, 7, 3)
    query = run(spark, server, topic, tmp_path, maxOffsetsPerTrigger=4, group="spark")
    batches = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
    assert batches == [4, 4, 2]
    client.configure_topic(topic.name, partitions=3)
    fill(topic, 1, 0, 2)

    query = run(spark, server, topic, tmp_path, maxOffsetsPerTrigger=4, group="spark")

    assert sink(spark, tmp_path) == (
        [(0, n) for n in range(8)] + [(1, n) for n in range(3)] + [(2, n) for n in range(2)]
    )
    # Spark acknowledges a micro-batch when the next one begins.
    assert list(topic.describe_group("spark").cursors) == [7, 3, 0]


def test_messages_deleted_unread_end_the_query_unless_they_may_be_missed(
    spark: SparkSession, server: ServerProcess, topic: queueber.Topic, tmp_path: Path
) -> None:
    fill(topic, 2)
    run(spark, server, topic, tmp_path)
    fill(topic, 4)
    topic.trim(partition=0, start=5)
    told = f"3 messages of topic '{topic.name}' from offset 2 of partition 0 on were deleted"

    with pytest.raises(StreamingQueryException, match=told):
        run(spark, server, topic, tmp_path)
    assert sink(spark, tmp_path) == [(0, 0), (0, 1)]

    query = run(spark, server, topic, tmp_path, failOnDataLoss="false")
    assert sink(spark, tmp_path) == [(0, 0), (0, 1), (0, 5)]
    assert query.lastProgress is not None
    (source,) = query.lastProgress["sources"]
    assert '"missed": 3' in str(source["endOffset"]).replace("'", '"')


# --- offsets, without Spark -----------------------------------------------------------------------


def reader_of(server: ServerProcess, topic: queueber.Topic, **options: str) -> MessagesStreamReader:
    given = {"address": server.address, "topic": topic.name, **options}
    return MessagesStreamReader(topic_read_options(given, is_streaming=True), ("offset",))


def test_start_says_where_a_new_query_begins(server: ServerProcess, topic: queueber.Topic) -> None:
    fill(topic, 5, 1)

    def begins(place: str) -> object:
        return reader_of(server, topic, startingOffsets=place).initialOffset()

    assert reader_of(server, topic).initialOffset() == begins("earliest") == {"0": 0, "1": 0}
    assert begins("latest") == {"0": 5, "1": 1}
    assert begins('{"0": 2, "1": -1}') == {"0": 2, "1": 1}
    assert begins("2100-01-01T00:00:00Z") == {"0": 5, "1": 1}


def test_micro_batch_has_exactly_the_messages_between_two_offsets(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    fill(topic, 5, 3)
    reader = reader_of(server, topic)

    parts = reader.partitions({"0": 1, "1": 3}, {"0": 4, "1": 3})

    assert [each.to_pydict() for part in parts for each in reader.read(part)] == [
        {"offset": [1, 2, 3]}
    ]
    assert reader.reportLatestOffset() == {"0": 5, "1": 3}


def test_missed_messages_are_counted_in_the_checkpoint(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    fill(topic, 5, 1)
    topic.trim(partition=0, start=3)
    strict, lenient = reader_of(server, topic), reader_of(server, topic, failOnDataLoss="false")
    start = {"0": 1, "1": 0}

    with pytest.raises(OutOfRange, match="2 messages of topic"):
        strict.latestOffset(start, ReadAllAvailable())
    with pytest.raises(OutOfRange, match="2 messages of topic"):
        strict.partitions(start, {"0": 5, "1": 1})
    end = lenient.latestOffset(start, ReadMaxRows(2))
    assert end == {"0": 5, "1": 0, "missed": 2}
    rest = lenient.latestOffset(end, ReadAllAvailable())
    assert rest == {"0": 5, "1": 1, "missed": 2} == lenient.latestOffset(rest, ReadAllAvailable())
    assert len(lenient.partitions(start, rest)) == 2


def test_query_of_what_is_available_ends_where_the_topic_was_when_it_began(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    fill(topic, 2, 0)
    reader = reader_of(server, topic)
    reader.prepareForTriggerAvailableNow()
    fill(topic, 3, 1)

    end = reader.latestOffset({"0": 0, "1": 0}, ReadAllAvailable())

    assert end == {"0": 2, "1": 0} == reader.latestOffset(end, ReadAllAvailable())


def test_checkpoint_of_another_topic_is_refused(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    fill(topic, 1)
    reader = reader_of(server, topic)

    with pytest.raises(queueber.InvalidArgument, match=r"at offset 7 of partition 0, .* ends at 1"):
        reader.latestOffset({"0": 7, "1": 0}, ReadAllAvailable())
    with pytest.raises(queueber.InvalidArgument, match=r"partition 2, .* no such partition"):
        reader.partitions({"2": 0}, {"2": 1})


@given(ahead=st.lists(st.integers(0, 1000), min_size=1, max_size=8), count=st.integers(1, 5000))
def test_limit_is_shared_out_without_rest(ahead: list[int], count: int) -> None:
    first = dict.fromkeys(range(len(ahead)), 100)
    ends = {each: 100 + size for each, size in enumerate(ahead)}

    chosen = limited(first, ends, count)

    assert sum(chosen[each] - 100 for each in chosen) == min(count, sum(ahead))
    assert all(100 <= chosen[each] <= ends[each] for each in ends)
