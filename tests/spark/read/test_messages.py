"""Batch reads of topics: the messages between two places, each once, and only what is wanted."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

import queueber
from queueber import NewMessage, OutOfRange
from queueber.spark.read.messages import MessagesReader
from queueber.spark.read.topic_ranges import MessagePart, to_parts
from queueber.spark.topic_options import topic_read_options
from queueber.testing import ServerProcess
from tests.spark.read.reading import sent_rows


def reader_of(
    server: ServerProcess, topic: queueber.Topic, wanted: Sequence[str], **options: str
) -> MessagesReader:
    given = {"address": server.address, "topic": topic.name, **options}
    return MessagesReader(topic_read_options(given), wanted)


def places(server: ServerProcess, topic: queueber.Topic, **options: str) -> list[tuple[int, int]]:
    """Partition and offset of what a read gets."""
    rows = sent_rows(reader_of(server, topic, ("partition", "offset"), **options)).to_pylist()
    return [(row["partition"], row["offset"]) for row in rows]


def fill(topic: queueber.Topic, *counts: int) -> None:
    """So many messages in each partition, each a publish of its own."""
    for partition, count in enumerate(counts):
        for n in range(count):
            topic.publish(b"%d" % n, partition=partition)


# --- with Spark -----------------------------------------------------------------------------------


def test_message_is_a_row_with_all_its_columns(
    spark: SparkSession, server: ServerProcess, topic: queueber.Topic
) -> None:
    topic.publish(b"plain", partition=0)
    topic.publish(NewMessage(b"full", "k", {"a": "b"}), partition=1)
    frame = spark.read.format("queueber").option("address", server.address)
    frame = frame.option("topic", topic.name)

    rows = frame.load().orderBy("partition").collect()

    plain, full = topic.read(0)[0], topic.read(1)[0]
    assert rows == [
        Row(
            partition=each.partition,
            offset=0,
            id=each.id.hex(),
            timestamp=each.timestamp.replace(tzinfo=None),
            key=key,
            attributes=attributes,
            payload=bytearray(each.payload),
            sequence=each.sequence,
        )
        for each, key, attributes in ((plain, None, {}), (full, "k", {"a": "b"}))
    ]
    counted = frame.option("push_filters", "true").schema("partition int, timestamp timestamp")
    at = full.timestamp.strftime("%Y-%m-%d %H:%M:%S.%f")
    where = f"partition = 1 AND timestamp >= TIMESTAMP '{at}'"
    assert counted.load().where(where).count() == 1


def test_missing_topic_and_column_are_told_before_any_task_runs(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, topic: queueber.Topic
) -> None:
    def refusal(schema: str, name: str) -> str:
        reading = spark.read.format("queueber").option("address", server.address)
        with pytest.raises(AnalysisException) as refused:
            reading.option("topic", name).schema(schema).load().collect()
        return str(refused.value)

    assert "option 'topic': there is no topic 'missing'" in refusal("id string", "missing")
    assert "column 'colour' is not one of the table 'messages'" in refusal("colour int", topic.name)
    assert "missing" not in list(client.topics())


# --- without --------------------------------------------------------------------------------------


def test_places_say_where_a_read_begins_and_ends(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    fill(topic, 4, 3)
    third = str(topic.read(0)[2].timestamp_ms)

    every = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]
    assert places(server, topic) == every
    assert places(server, topic, startingOffsets='{"0": 2}', endingOffsets='{"0": 3, "1": 1}') == [
        (0, 2),
        (1, 0),
    ]
    assert places(server, topic, startingOffsets='{"0": 4, "1": 3}') == []
    by_time = places(server, topic, startingTimestamp=third)
    assert (0, 2) in by_time
    assert by_time == [(p, o) for p, o in every if topic.read(p)[o].timestamp_ms >= int(third)]
    before = places(server, topic, endingTimestamp=third)
    assert sorted(before + by_time) == every


def test_place_that_is_not_in_the_topic_is_refused(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    fill(topic, 2, 0)

    with pytest.raises(
        OutOfRange,
        match=r"'startingOffsets': offset is 3; partition 0 of topic .* "
        "has messages from 0 up to 2",
    ):
        places(server, topic, startingOffsets='{"0": 3}')
    with pytest.raises(
        queueber.InvalidArgument, match=r"'endingOffsets': topic .* has 2 partition"
    ):
        places(server, topic, endingOffsets='{"2": 0}')


def test_deleted_messages_are_an_error_unless_they_may_be_missed(
    server: ServerProcess, topic: queueber.Topic, caplog: pytest.LogCaptureFixture
) -> None:
    fill(topic, 5)
    reader = reader_of(server, topic, ("offset",), startingOffsets='{"0": 1}')
    lenient = reader_of(
        server, topic, ("offset",), startingOffsets='{"0": 1}', failOnDataLoss="false"
    )
    (part,) = lenient.partitions()
    topic.trim(partition=0, start=3)
    told = f"2 messages of topic '{topic.name}' from offset 1 of partition 0 on were deleted"

    for read in (reader.partitions, lambda: list(reader.read(part))):
        with pytest.raises(OutOfRange, match=told):
            read()
    assert [each.to_pydict() for each in lenient.read(part)] == [{"offset": [3, 4]}]
    assert sent_rows(lenient).to_pydict() == {"offset": [3, 4]}
    assert [each.getMessage().startswith(told) for each in caplog.records] == [True, True]
    assert places(server, topic) == [(0, 3), (0, 4)]


def test_topic_that_is_another_one_by_now_is_told(
    server: ServerProcess, client: queueber.Client, topic: queueber.Topic
) -> None:
    fill(topic, 5)
    reader = reader_of(server, topic, ("offset",))
    (part,) = reader.partitions()
    client.delete_topic(topic.name)
    client.create_topic(topic.name)

    with pytest.raises(OutOfRange, match=r"ends at 0, before offset 5, .* created again"):
        list(reader.read(part))


def test_large_partition_is_read_by_several_tasks_that_have_each_message_once(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    for _ in range(3):
        topic.publish([b"x"] * 8000, partition=0)
    topic.publish([b"y"] * 10, partition=1)

    parts = reader_of(server, topic, ("offset",), splits="4").partitions()

    ranges = [(p.partition, p.first, p.end) for p in parts if isinstance(p, MessagePart)]
    assert ranges == [(0, 0, 8000), (0, 8000, 16000), (0, 16000, 24000), (1, 0, 10)]
    found = places(server, topic, splits="4")
    assert found == [(0, n) for n in range(24_000)] + [(1, n) for n in range(10)]
    assert to_parts({0: 5}, {0: 5}, 4) == []


def test_payloads_are_not_sent_unless_they_are_wanted(
    server: ServerProcess, topic: queueber.Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.publish(b"x" * 1000, partition=0)
    asked: list[set[str]] = []
    read = queueber.Topic.read

    def noted(self: queueber.Topic, *args: object, **options: object) -> object:
        asked.append({each.value for each in options["without"]})  # type: ignore[attr-defined]
        return read(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(queueber.Topic, "read", noted)

    sent_rows(reader_of(server, topic, ("id", "timestamp")))
    sent_rows(reader_of(server, topic, ("payload",)))

    assert asked == [{"contents", "keys", "attributes"}, {"keys", "attributes"}]


def test_pushed_filters_leave_messages_at_the_server(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    fill(topic, 4, 2)
    at = [topic.read(0)[n].timestamp for n in range(4)]

    def sent(*filters: Filter) -> tuple[int, list[tuple[int, int]]]:
        reader = reader_of(server, topic, ("partition", "offset"), push_filters="true")
        left = len(list(reader.pushFilters(list(filters))))
        rows = sent_rows(reader).to_pylist()
        return left, [(row["partition"], row["offset"]) for row in rows]

    of_0 = EqualTo(("partition",), 0)
    assert sent(of_0, GreaterThan(("offset",), 1)) == (0, [(0, 2), (0, 3)])
    assert sent(In(("partition",), (1, 7)), LessThanOrEqual(("offset",), 0)) == (0, [(1, 0)])
    assert sent(EqualTo(("offset",), 3)) == (0, [(0, 3)])
    assert sent(of_0, EqualTo(("partition",), 1)) == (0, [])
    assert sent(of_0, LessThan(("offset",), -1)) == (0, [])
    assert sent(of_0, IsNotNull(("offset",)), IsNotNull(("key",)), EqualTo(("key",), "k"))[0] == 2
    column = ("timestamp",)
    for bound, holds in (
        (GreaterThanOrEqual(column, at[2]), [each >= at[2] for each in at]),
        (GreaterThan(column, at[1]), [each > at[1] for each in at]),
        (LessThan(column, at[2]), [each < at[2] for each in at]),
        (LessThanOrEqual(column, at[1]), [each <= at[1] for each in at]),
    ):
        assert sent(of_0, bound) == (0, [(0, n) for n in range(4) if holds[n]])
    assert sent(of_0, LessThan(("timestamp",), datetime(2020, 1, 1, tzinfo=UTC))) == (0, [])


def test_results_of_a_queue_are_read_as_a_topic(
    server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    queue.add(b"in", key="k")
    queue.poll().complete([b"out"])
    results = client.topic(f"queue/{queue.name}/results")

    rows = sent_rows(reader_of(server, results, ("offset", "payload"))).to_pylist()

    assert rows == [{"offset": 0, "payload": b"out"}]
