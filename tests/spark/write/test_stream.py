"""Streaming writes: what comes in arrives once, whatever happens to the query."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.spark_sink import Sink

both_methods = pytest.mark.parametrize("method", ["bulk", "rpc"])


class Source:
    """A folder of text files, of which each becomes a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._incoming = folder / "incoming"
        self._incoming.mkdir()
        self._files = 0
        self.lines: list[bytes] = []

    def bring(self, lines: int) -> None:
        texts = [f"file {self._files} line {number}" for number in range(lines)]
        # Written beside it, for the query may look at any time.
        path = self._folder / f"{self._files}.txt"
        path.write_text("".join(f"{text}\n" for text in texts))
        path.rename(self._incoming / path.name)
        self._files += 1
        self.lines += [text.encode() for text in texts]

    def rows(self) -> DataFrame:
        reader = self._spark.readStream.format("text").option("maxFilesPerTrigger", 1)
        return reader.load(str(self._incoming)).withColumnRenamed("value", "contents")

    def expected(self) -> list[bytes]:
        return sorted(self.lines)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path)


def start(sink: Sink, rows: DataFrame, checkpoint: Path, **options: str) -> StreamingQuery:
    given = {"address": sink.server.address, "queue": sink.queue.name, **options}
    writer = rows.writeStream.format("queueber").option("checkpointLocation", str(checkpoint))
    return writer.options(**given).trigger(availableNow=True).start()


def run(sink: Sink, rows: DataFrame, checkpoint: Path, **options: str) -> None:
    """Write all that is there."""
    query = start(sink, rows, checkpoint, **options)
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()


def epochs_of(checkpoint: Path) -> list[int]:
    """The micro-batches that Spark knows to be committed."""
    return sorted(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))


def assert_exactly(sink: Sink, expected: list[bytes], batch: str = "b") -> None:
    assert sink.contents() == expected
    receipt = sink.queue.receipt(batch)
    assert (receipt.added, receipt.live) == (len(expected), len(expected))
    assert sink.queue.stats().added_total == len(expected)
    sink.wait_settled()


@both_methods
def test_stream_brings_rows_once_and_goes_on_where_it_was(
    sink: Sink, source: Source, tmp_path: Path, method: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    source.bring(3)
    source.bring(5)
    run(sink, source.rows(), checkpoint, method=method, batch="b")
    assert_exactly(sink, source.expected())

    source.bring(2)
    run(sink, source.rows(), checkpoint, method=method, batch="b")
    run(sink, source.rows(), checkpoint, method=method, batch="b")

    assert len(source.lines) == 10
    assert epochs_of(checkpoint) == [0, 1, 2]
    assert_exactly(sink, source.expected())


@both_methods
def test_epoch_replayed_after_its_commit_adds_nothing(
    sink: Sink, source: Source, tmp_path: Path, method: str
) -> None:
    """A driver that died after our commit, before Spark took note of it, does the epoch again."""
    checkpoint = tmp_path / "checkpoint"
    source.bring(40)
    source.bring(30)
    run(sink, source.rows(), checkpoint, method=method, batch="b")
    before = sink.items()
    for path in (checkpoint / "commits").glob("*1*"):
        path.unlink()
    assert epochs_of(checkpoint) == [0]

    source.bring(20)
    run(sink, source.rows(), checkpoint, method=method, batch="b")

    assert epochs_of(checkpoint) == [0, 1, 2]
    assert_exactly(sink, source.expected())
    # What was there is the same, not removed and added again.
    assert {item.id for item in before} < {item.id for item in sink.items()}


@both_methods
def test_epoch_that_failed_half_way_is_brought_once(
    spark: SparkSession, sink: Sink, source: Source, tmp_path: Path, method: str
) -> None:
    """In the method rpc some of its rows are there already when it is tried again."""
    checkpoint, marker = tmp_path / "checkpoint", tmp_path / "failed"
    source.bring(10)
    run(sink, source.rows(), checkpoint, method=method, batch="b")
    source.bring(3000)

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 2 and not marker.exists():
                marker.touch()
                raise ValueError("half-way")
            yield batch

    limit = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(limit, "1000")
    try:
        rows = source.rows()
        failing = rows.mapInArrow(fail_once, rows.schema)
        with pytest.raises(PySparkException, match="half-way"):
            run(sink, failing, checkpoint, method=method, batch="b")
        between = sink.queue.receipt("b")
        assert len(sink.contents()) == between.added
        assert between.added == 10 if method == "bulk" else 10 <= between.added < 3010
        assert epochs_of(checkpoint) == [0]

        run(sink, failing, checkpoint, method=method, batch="b")
    finally:
        spark.conf.unset(limit)

    assert epochs_of(checkpoint) == [0, 1]
    assert_exactly(sink, source.expected())


def test_two_queries_write_into_one_queue(sink: Sink, source: Source, tmp_path: Path) -> None:
    """Each has epochs of its own, so that none is taken for the other's."""
    source.bring(10)
    source.bring(20)
    queries = [
        start(sink, source.rows(), tmp_path / name, batch="b", method=method)
        for name, method in (("one", "bulk"), ("two", "bulk"), ("three", "rpc"))
    ]
    for query in queries:
        assert query.awaitTermination(120)

    assert [epochs_of(tmp_path / name) for name in ("one", "two", "three")] == [[0, 1]] * 3
    assert_exactly(sink, sorted(source.lines * 3))


def test_stream_takes_all_columns(
    spark: SparkSession, sink: Sink, source: Source, tmp_path: Path
) -> None:
    source.bring(2)
    rows = source.rows().selectExpr(
        "contents", "contents AS key", "9 AS priority", "map('from', 'stream') AS attributes"
    )

    run(sink, rows, tmp_path / "checkpoint", batch="b", transfer="stream", stage_timeout="60")

    found = [(i.contents, i.key, i.priority, i.attributes, i.batch) for i in sink.items()]
    assert found == [
        (each, each.decode(), 9, {"from": "stream"}, "b") for each in source.expected()
    ]
    sink.wait_settled()


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (["contents", "1 AS colour"], {}, "column 'colour': a queue has no such column"),
        (["contents"], {"write_id": "w"}, "option 'write_id' is for batch writes only"),
        (["contents"], {"speed": "high"}, "option 'speed' is not one of this source"),
        (["contents"], {"method": "fast"}, "option 'method': 'fast' is none of bulk, rpc"),
    ],
    ids=["column", "write_id", "speed", "method"],
)
def test_mistake_in_a_stream_is_named_and_nothing_is_written(
    sink: Sink,
    source: Source,
    tmp_path: Path,
    columns: list[str],
    options: dict[str, str],
    sentence: str,
) -> None:
    source.bring(2)

    with pytest.raises(PySparkException, match=sentence):
        run(sink, source.rows().selectExpr(*columns), tmp_path / "checkpoint", **options)

    assert epochs_of(tmp_path / "checkpoint") == []
    sink.assert_untouched()
