"""Writes to topics: every row becomes a message once, whatever is repeated."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import queueber
from queueber import NewMessage
from queueber.limits import MIB
from queueber.model import LoadRef
from queueber.spark.topic_options import TopicWriteOptions
from queueber.spark.write.messages import publish_rows
from queueber.testing import ServerProcess
from tests.spark.write.test_stream import Source, epochs_of, source
from tests.support.spark_sink import wait_until

__all__ = ["source"]


def payloads(topic: queueber.Topic, partitions: int = 2) -> list[bytes]:
    return sorted(each.payload for at in range(partitions) for each in topic.messages(at))


def save(server: ServerProcess, topic: queueber.Topic, rows: DataFrame, **options: str) -> None:
    given = {"address": server.address, "topic": topic.name, **options}
    rows.write.format("queueber").mode("append").options(**given).save()


def run(server: ServerProcess, topic: queueber.Topic, rows: DataFrame, checkpoint: Path) -> None:
    """Write all that is there as a stream."""
    writing = rows.writeStream.format("queueber").option("checkpointLocation", str(checkpoint))
    writing = writing.option("address", server.address).option("topic", topic.name)
    query = writing.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()


# --- with Spark -----------------------------------------------------------------------------------


def test_every_column_reaches_its_message_and_a_repeated_write_publishes_nothing(
    spark: SparkSession, server: ServerProcess, topic: queueber.Topic
) -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES ('a', 'k', map('x', 'y'), 1), ('b', NULL, NULL, 0) "
        "AS t(value, key, attributes, partition)"
    )

    for _ in range(2):
        save(server, topic, rows.coalesce(1), write_id="once")

    (a,), (b,) = topic.read(1), topic.read(0)
    assert (a.payload, a.key, a.attributes) == (b"a", "k", {"x": "y"})
    assert (b.payload, b.key, b.attributes) == (b"b", "", {})
    save(server, topic, rows.select("value"))
    assert payloads(topic) == [b"a", b"a", b"b", b"b"]


def test_stream_publishes_rows_once_though_a_micro_batch_fails_and_is_replayed(
    spark: SparkSession,
    server: ServerProcess,
    topic: queueber.Topic,
    source: Source,
    tmp_path: Path,
) -> None:
    checkpoint, marker = tmp_path / "checkpoint", tmp_path / "failed"
    source.bring(10)
    source.bring(12_000)
    rows = source.rows().withColumnRenamed("contents", "payload")
    address, name = server.address, topic.name

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 8 and not marker.exists():
                marker.touch()
                with queueber.connect(address) as client:
                    wait_until(lambda: len(payloads(client.topic(name))) > 10)
                raise ValueError("half-way")
            yield batch

    limit = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(limit, "1000")
    try:
        failing = rows.mapInArrow(fail_once, rows.schema)
        with pytest.raises(PySparkException, match="half-way"):
            run(server, topic, failing, checkpoint)
        assert epochs_of(checkpoint) == [0]
        assert 10 < len(payloads(topic)) < 12_010  # rows are there as soon as they are sent
        run(server, topic, failing, checkpoint)
        assert payloads(topic) == source.expected()

        # A driver that died before Spark took note of the commit does the micro-batch again.
        for path in (checkpoint / "commits").glob("*1*"):
            path.unlink()
        source.bring(5)
        run(server, topic, failing, checkpoint)
    finally:
        spark.conf.unset(limit)

    assert epochs_of(checkpoint) == [0, 1, 2]
    assert payloads(topic) == source.expected()


def test_mistakes_are_named_before_any_task_runs(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, topic: queueber.Topic
) -> None:
    def refusal(columns: str, **options: str) -> str:
        with pytest.raises(PySparkException) as refused:
            save(server, topic, spark.sql(f"SELECT {columns}"), **options)
        return str(refused.value)

    assert "column 'payload' is missing; the DataFrame has x" in refusal("1 AS x")
    assert "column 'value': there is 'payload' too" in refusal("'a' AS payload, 'b' AS value")
    assert "column 'priority': a topic has no such column" in refusal("'a' AS value, 1 AS priority")
    assert "column 'key': it is int; it must be string" in refusal("'a' AS value, 1 AS key")
    assert "option 'startingOffsets' is for reading only" in refusal(
        "'a' AS value", startingOffsets="earliest"
    )
    topic.close()
    assert f"option 'topic': '{topic.name}' is closed" in refusal("'a' AS value")
    assert payloads(topic) == []


# --- a task, without Spark ------------------------------------------------------------------------


def publish(
    server: ServerProcess, topic: queueber.Topic, rows: list[str], *, epoch: int, partition: int = 0
) -> int:
    options = TopicWriteOptions(server.address, topic.name)
    batches = [
        pa.record_batch({"payload": pa.array(rows[at : at + 2])}) for at in range(0, len(rows), 2)
    ]
    return publish_rows(options, LoadRef("stream q", epoch), partition, iter(batches)).rows


def test_repeated_task_goes_on_where_the_first_attempt_ended(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    publish(server, topic, ["a", "b"], epoch=3)

    assert publish(server, topic, ["a", "b", "c", "d", "e"], epoch=3) == 5
    assert publish(server, topic, ["a", "b", "c", "d", "e"], epoch=3) == 5
    publish(server, topic, ["a", "b"], epoch=3, partition=1)
    publish(server, topic, ["a", "b"], epoch=4)

    assert payloads(topic) == sorted([b"a", b"b"] * 3 + [b"c", b"d", b"e"])


def test_repeat_with_other_rows_is_refused_and_publishes_nothing(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    publish(server, topic, ["a", "b"], epoch=0)

    with pytest.raises(queueber.Aborted, match="had other contents, and has these now"):
        publish(server, topic, ["b", "a", "c"], epoch=0)

    assert payloads(topic) == [b"a", b"b"]


def test_task_of_an_earlier_micro_batch_is_refused(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    publish(server, topic, ["a"], epoch=1)

    with pytest.raises(queueber.Aborted, match="is in epoch 1, and epoch 0 is over"):
        publish(server, topic, ["late"], epoch=0)

    assert payloads(topic) == [b"a"]


def test_row_that_the_server_refuses_is_told(server: ServerProcess, topic: queueber.Topic) -> None:
    with pytest.raises(
        queueber.ResourceExhausted,
        match=r"^rows 3 to 3 of their partition: .* the limit is 4194304",
    ):
        publish(server, topic, ["a", "b", "c", "x" * (4 * MIB + 1)], epoch=0)

    assert payloads(topic) == [b"a", b"b", b"c"]


def test_rows_of_a_key_stay_in_order(server: ServerProcess, topic: queueber.Topic) -> None:
    options = TopicWriteOptions(server.address, topic.name)
    rows = [(f"{n}", f"key {n % 5}") for n in range(500)]
    batch = pa.record_batch({"value": [v for v, _ in rows], "key": [k for _, k in rows]})

    publish_rows(options, LoadRef("w", 0), 0, iter([batch]))

    found = [each for partition in (0, 1) for each in topic.messages(partition)]
    for key in {k for _, k in rows}:
        of_key = [NewMessage(each.payload, each.key) for each in found if each.key == key]
        assert of_key == [NewMessage(v.encode(), k) for v, k in rows if k == key]
