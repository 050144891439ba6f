"""Streaming reads: every result once, whatever stops the query; the server knows how far it is."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery

import queueber
from queueber.spark.options import ReadOptions
from queueber.spark.read.results import DonePart
from queueber.spark.read.stream import ResultsStreamReader
from queueber.testing import ServerProcess
from tests.spark.read.reading import complete


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    tick = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if holds():
            return
        tick.wait(0.05)
    raise AssertionError("it never came true")


def start(
    spark: SparkSession,
    server: ServerProcess,
    queue: queueber.Queue,
    folder: Path,
    *,
    available_now: bool = False,
    **options: object,
) -> StreamingQuery:
    """A query that writes results to files."""
    reading = spark.readStream.format("queueber").option("address", server.address)
    reading = reading.option("queue", queue.name).schema("id string, result binary")
    for name, value in options.items():
        reading = reading.option(name, str(value))
    writing = reading.load().writeStream.format("parquet")
    writing = writing.option("checkpointLocation", str(folder / "checkpoint"))
    if available_now:
        writing = writing.trigger(availableNow=True)
    return writing.start(str(folder / "sink"))


def sink(spark: SparkSession, folder: Path) -> list[bytes]:
    rows = spark.read.schema("id string, result binary").parquet(str(folder / "sink")).collect()
    return sorted(bytes(row.result) for row in rows)


def test_query_that_is_stopped_and_started_again_has_every_result_once(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue, tmp_path: Path
) -> None:
    """While results keep arriving, and twice in the middle of its work."""
    total = 6000
    expected = sorted(b"%d" % n for n in range(total))
    complete(queue, [b"%d" % n for n in range(1000)])

    def keep_completing() -> None:
        with queueber.connect(server.address) as client:
            own = client.queue(queue.name)
            for at in range(1000, total, 100):
                complete(own, [b"%d" % n for n in range(at, at + 100)])

    arriving = threading.Thread(target=keep_completing)
    arriving.start()
    for _ in range(2):
        query = start(spark, server, queue, tmp_path, reader="sink", max_rows=250)
        seen = len(query.recentProgress)
        wait_until(lambda query=query, seen=seen: len(query.recentProgress) > seen + 1)  # type: ignore[misc]
        query.stop()
        assert 0 < queue.results_stats().readers["sink"] < total
    arriving.join()
    query = start(spark, server, queue, tmp_path, reader="sink")
    query.processAllAvailable()
    # Spark commits a micro-batch to its source when the next one begins.
    complete(queue, [b"the last"])
    query.processAllAvailable()
    query.stop()

    assert sink(spark, tmp_path) == [*expected, b"the last"]
    assert queue.results_stats().readers["sink"] == total
    wait_until(lambda: queue.results_stats().first_offset == total)  # nobody needs them any more


def test_runs_of_what_is_available_go_on_where_the_last_one_ended(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue, tmp_path: Path
) -> None:
    for text in (b"1", b"2", b"3"):
        complete(queue, [text])
        start(spark, server, queue, tmp_path, available_now=True).awaitTermination()

    assert sink(spark, tmp_path) == [b"1", b"2", b"3"]
    # The last micro-batch is acknowledged when the query next runs.
    ((reader, acknowledged),) = queue.results_stats().readers.items()
    assert reader.startswith("spark-")
    assert acknowledged >= 2


def test_results_deleted_before_they_were_read_end_the_query(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue, tmp_path: Path
) -> None:
    complete(queue, [b"1", b"2"])
    start(spark, server, queue, tmp_path, available_now=True, reader="r").awaitTermination()
    complete(queue, [b"3"])
    complete(queue, [b"4"])
    queue.drop_reader("r")
    queue.ack_results("another", 3)
    wait_until(lambda: queue.results_stats().first_offset == 3)

    query = start(spark, server, queue, tmp_path, available_now=True, reader="r")

    with pytest.raises(StreamingQueryException, match=r"1 results of queue .* from offset 2"):
        query.awaitTermination()
    assert sink(spark, tmp_path) == [b"1", b"2"]


def test_batch_of_a_stream_is_read_alone(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue, tmp_path: Path
) -> None:
    complete(queue, [b"red"], "red")
    complete(queue, [b"green"] * 3, "green")
    complete(queue, [b"red again"], "red")

    start(spark, server, queue, tmp_path, available_now=True, batch="red").awaitTermination()

    assert sink(spark, tmp_path) == [b"red", b"red again"]


# --- offsets, without Spark -----------------------------------------------------------------------


def reader_of(
    server: ServerProcess, queue: queueber.Queue, **options: object
) -> ResultsStreamReader:
    made = ReadOptions(server.address, queue.name, None, **options)  # type: ignore[arg-type]
    return ResultsStreamReader(made, ("result",))


def test_start_says_where_a_new_query_begins(server: ServerProcess, queue: queueber.Queue) -> None:
    complete(queue, [b"x"] * 5)
    queue.ack_results("known", 2)
    queue.ack_results("slow", 0)

    def begins(**options: object) -> object:
        return reader_of(server, queue, **options).initialOffset()["offset"]

    assert begins() == begins(reader="new") == 0
    assert begins(reader="known") == 2
    assert begins(reader="known", start="earliest") == 0
    assert begins(reader="known", start="latest") == begins(start="latest") == 5


def test_latest_offset_keeps_the_limit_and_the_name_of_the_reader(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    complete(queue, [b"x"] * 5)
    reader = reader_of(server, queue, max_rows=2)

    assert reader.getDefaultReadLimit() == ReadMaxRows(2)
    assert reader.latestOffset({"offset": 1, "reader": "r"}, ReadMaxRows(2)) == {
        "offset": 3,
        "reader": "r",
    }
    assert reader.latestOffset({"offset": 1}, ReadAllAvailable()) == {"offset": 5}
    assert reader.initialOffset() == reader.initialOffset()


def test_checkpoint_of_another_queue_is_refused(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    complete(queue, [b"x"])

    with pytest.raises(queueber.InvalidArgument, match=r"at offset 7, but the results .* end at 1"):
        reader_of(server, queue).latestOffset({"offset": 7}, ReadAllAvailable())


def test_results_deleted_between_planning_and_reading_are_an_error(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    complete(queue, [b"1"])
    complete(queue, [b"2"])
    reader = reader_of(server, queue, reader="r")
    (part,) = reader.partitions({"offset": 0}, {"offset": 2})
    queue.ack_results("r", 1)
    wait_until(lambda: queue.results_stats().first_offset == 1)

    with pytest.raises(queueber.QueueberError, match=r"1 results of queue .* from offset 0 on"):
        list(reader.read(part))


def test_planned_results_are_kept_for_the_reader_from_its_first_batch_on(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    complete(queue, [b"1", b"2"])
    reader = reader_of(server, queue, reader="r")

    (part,) = reader.partitions({"offset": 0}, {"offset": 2})
    queue.ack_results("fast", 2)

    assert queue.results_stats().readers == {"r": 0, "fast": 2}
    assert isinstance(part, DonePart)
    assert [batch.to_pydict() for batch in reader.read(part)] == [{"result": [b"1", b"2"]}]
    reader.commit({"offset": 2})
    assert queue.results_stats().readers["r"] == 2
    assert reader.partitions({"offset": 2}, {"offset": 2}) == []
