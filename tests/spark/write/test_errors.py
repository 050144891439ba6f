"""Mistakes: told on the driver before any task runs, and rows that cannot be stored."""

import re
import socket
from itertools import count

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import queueber
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, MIB
from queueber.spark.source import QueueberDataSource
from tests.support.spark_sink import Sink

_groups = count(1)


def sentence_of(error: BaseException) -> str:
    """What our error says to the user, who finds it at the end of a traceback."""
    found = re.findall(r"^queueber\.errors\.\w+: (.*)$", str(error), re.MULTILINE)
    assert found, str(error)
    return str(found[-1])


def fail_early(spark: SparkSession, sink: Sink, rows: DataFrame, **options: object) -> str:
    """The sentence with which a write is refused before it began."""
    group = f"mistake {next(_groups)}"
    before = [stats.name for stats in sink_queues(sink)]
    spark.sparkContext.setJobGroup(group, group)
    try:
        with pytest.raises(PySparkException) as caught:
            sink.write(rows, **options)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup(group)) == []
    assert [stats.name for stats in sink_queues(sink)] == before
    sink.assert_untouched()
    return sentence_of(caught.value)


def refusal(sink: Sink, schema: StructType, **options: str) -> str:
    """The sentence with which our source refuses a write, as Spark asks it on the driver.

    Spark starts a Python for each: what each mistake is told as needs none, so it is asked here.
    """
    given = {"address": sink.server.address, "queue": sink.queue.name, **options}
    with pytest.raises(InvalidArgument) as caught:
        QueueberDataSource(given).writer(schema, overwrite=False)
    return str(caught.value)


def sink_queues(sink: Sink) -> list[queueber.Stats]:
    with queueber.connect(sink.server.address) as client:
        return client.queues()


WRONG_COLUMNS = [
    (
        ["'x' AS contents", "1 AS colour"],
        "column 'colour': a queue has no such column; it has contents",
    ),
    (["'x' AS content"], "column 'contents' is missing; the DataFrame has content; select"),
    (["1 AS contents"], "column 'contents': it is int; it must be binary or string"),
    (["'x' AS contents", "7 AS key"], "column 'key': it is int; it must be string"),
    (["'x' AS contents", "'5' AS delay_ms"], "column 'delay_ms': it is string; it must be an int"),
    (["'x' AS contents", "1.5D AS delay_ms"], "column 'delay_ms': it is double; it must be an int"),
    (
        ["'x' AS contents", "'9' AS visible_at"],
        "column 'visible_at': it is string; it must be time",
    ),
    (
        ["'x' AS contents", "17L AS visible_at"],
        "column 'visible_at': it is bigint; it must be time",
    ),
    (
        ["'x' AS contents", "timestamp_ntz'2026-01-01' AS visible_at"],
        "column 'visible_at': it is timestamp_ntz; it must be timestamp",
    ),
    (["'x' AS contents", "'high' AS priority"], "column 'priority': it is string; it must be an i"),
    (["'x' AS contents", "1.0BD AS priority"], "column 'priority': it is decimal(2,1); it must be"),
    (["'x' AS contents", "'a' AS attributes"], "column 'attributes': it is string; it must be map"),
    (
        ["'x' AS contents", "map('a', 1) AS attributes"],
        "column 'attributes': it is map<string,int>",
    ),
    (
        ["'x' AS contents", "map(1, 'a') AS attributes"],
        "column 'attributes': it is map<int,string>",
    ),
    (
        ["'x' AS contents", "1 AS delay_ms", "current_timestamp() AS visible_at"],
        "column 'delay_ms': there is 'visible_at' too; give one of the two",
    ),
]


@pytest.mark.parametrize(
    ("columns", "sentence"), WRONG_COLUMNS, ids=[each[1][:50] for each in WRONG_COLUMNS]
)
def test_wrong_column_is_named(
    spark: SparkSession, sink: Sink, columns: list[str], sentence: str
) -> None:
    assert refusal(sink, spark.range(10).selectExpr(*columns).schema).startswith(sentence)


@pytest.mark.parametrize(("columns", "sentence"), WRONG_COLUMNS[:1], ids=["colour"])
def test_wrong_column_is_named_before_any_task_runs(
    spark: SparkSession, sink: Sink, columns: list[str], sentence: str
) -> None:
    assert fail_early(spark, sink, spark.range(10).selectExpr(*columns)).startswith(sentence)


WRONG_OPTIONS = [
    ({"colour": "red"}, "option 'colour' is not one of this source; it has address, queue, ba"),
    ({"table": "items"}, "option 'table' is for reading only"),
    ({"path": "/data"}, "option 'path' is not one of this source"),
    ({"queue": ""}, "option 'queue' is missing"),
    ({"queue": "a/b\n"}, "option 'queue': 'a/b\\n'"),
    ({"method": "fast"}, "option 'method': 'fast' is none of bulk, rpc"),
    ({"mode": "rpc"}, "option 'mode': say how rows reach the server with the option 'method'"),
    ({"transfer": "pigeon"}, "option 'transfer': 'pigeon' is none of auto, stream"),
    (
        {"stage_timeout": "soon"},
        "option 'stage_timeout': 'soon' is not a number from 1 to 604800",
    ),
    ({"stage_timeout": "0"}, "option 'stage_timeout': '0' is not a number from 1 to 604800"),
    ({"stage_timeout": "nan"}, "option 'stage_timeout': 'nan' is not a number from 1 to 604800"),
    (
        {"stage_timeout": "604801"},
        "option 'stage_timeout': '604801' is not a number from 1 to 604800",
    ),
    ({"address": "nowhere"}, "option 'address': 'nowhere'"),
    ({"batch": "b" * 257}, "option 'batch': it has 257 bytes; the limit is 256"),
    ({"write_id": "w" * 248}, "option 'write_id': it has 248 bytes; the limit is 247"),
]


@pytest.mark.parametrize(
    ("options", "sentence"), WRONG_OPTIONS, ids=[each[1][:40] for each in WRONG_OPTIONS]
)
def test_wrong_option_is_named(
    spark: SparkSession, sink: Sink, options: dict[str, str], sentence: str
) -> None:
    rows = spark.range(10).selectExpr("cast(id AS string) AS contents")

    assert refusal(sink, rows.schema, **options).startswith(sentence)


@pytest.mark.parametrize(("options", "sentence"), WRONG_OPTIONS[:1], ids=["colour"])
def test_wrong_option_is_named_before_any_task_runs(
    spark: SparkSession, sink: Sink, options: dict[str, str], sentence: str
) -> None:
    rows = spark.range(10).selectExpr("cast(id AS string) AS contents")

    assert fail_early(spark, sink, rows, **options).startswith(sentence)


def test_missing_queue_is_named(spark: SparkSession, sink: Sink) -> None:
    rows = spark.range(10).selectExpr("cast(id AS string) AS contents")

    with pytest.raises(PySparkException) as caught:
        rows.write.format("queueber").mode("append").save()

    assert sentence_of(caught.value) == (
        "option 'queue' is missing; it names the queue to read or to write, as 'topic' does a topic"
    )


def test_overwriting_is_refused(spark: SparkSession, sink: Sink) -> None:
    rows = spark.range(10).selectExpr("cast(id AS string) AS contents")
    writer = rows.write.format("queueber").option("address", sink.server.address)

    with pytest.raises(PySparkException) as caught:
        writer.option("queue", sink.queue.name).mode("overwrite").save()

    assert sentence_of(caught.value) == ('a queue cannot be overwritten; use .mode("append")')
    sink.assert_untouched()


def test_unreachable_server_is_named_before_any_task_runs(spark: SparkSession, sink: Sink) -> None:
    rows = spark.range(10).selectExpr("cast(id AS string) AS contents")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]

    sentence = fail_early(spark, sink, rows, address=f"127.0.0.1:{port}")

    assert f"127.0.0.1:{port}" in sentence


def test_unknown_queue_is_created_by_a_write(
    spark: SparkSession, sink: Sink, client: queueber.Client
) -> None:
    """As it is by an add."""
    name = sink.queue.name + "-new"
    rows = spark.range(3).selectExpr("cast(id AS string) AS contents")

    sink.write(rows, queue=name)

    assert Sink(sink.server, client.queue(name)).contents() == [b"0", b"1", b"2"]


ROW_7 = "row 7 of its partition has"
MANY = "map_from_arrays(transform(sequence(1, 33), n -> string(n)), array_repeat('v', 33))"
WRONG_ROWS = [
    ("contents", "null", f"column 'contents': {ROW_7} none; every item has contents"),
    (
        "contents",
        f"repeat('x', {4 * MIB} + 1)",
        f"column 'contents': {ROW_7} {4 * MIB + 1} bytes; the limit is {4 * MIB}",
    ),
    ("key", "repeat('ü', 257)", f"column 'key': {ROW_7} 514 bytes; the limit is 512"),
    ("priority", "10", f"column 'priority': {ROW_7} 10; it must be 0 to 9"),
    ("priority", "-1", f"column 'priority': {ROW_7} -1; it must be 0 to 9"),
    ("delay_ms", "-5L", f"column 'delay_ms': {ROW_7} -5; it must be 0 to {DELAY_MS_MAX}"),
    (
        "delay_ms",
        "9223372036854775807L",
        f"column 'delay_ms': {ROW_7} 9223372036854775807; it must be",
    ),
    ("visible_at", "timestamp'2999-01-01 00:00:00'", f"column 'visible_at': {ROW_7}"),
    ("attributes", "map('a', string(null))", f"column 'attributes': {ROW_7} 'a' without a value"),
    ("attributes", MANY, f"column 'attributes': {ROW_7} 33; the limit is 32"),
    (
        "attributes",
        "map('a', repeat('x', 8192))",
        f"column 'attributes': {ROW_7} 8193 bytes of them",
    ),
]


@pytest.mark.parametrize("method", ["bulk", "rpc"])
@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    WRONG_ROWS,
    ids=[f"{each[0]}={each[1]}"[:30] for each in WRONG_ROWS],
)
def test_row_that_cannot_be_stored_is_named_and_nothing_is_visible(
    spark: SparkSession, sink: Sink, method: str, column: str, value: str, sentence: str
) -> None:
    """A call of the method rpc brings all of its rows or none; only large ones are in several."""
    others = {"contents": "'x'"} | {column: "null"} if column != "contents" else {column: "'x'"}
    rows = spark.range(0, 10, 1, 1).selectExpr(
        *(
            f"if(id = 7, {value}, {other}) AS {name}" if name == column else f"{other} AS {name}"
            for name, other in others.items()
        )
    )

    with pytest.raises(PySparkException) as caught:
        sink.write(rows, method=method, batch="b")

    assert sentence_of(caught.value).startswith(sentence)
    if method == "bulk" or column != "contents":
        sink.assert_untouched()


def test_good_partitions_of_a_bad_write_are_not_visible(spark: SparkSession, sink: Sink) -> None:
    sink.queue.add([b"before"], batch="b")
    rows = spark.range(0, 4000, 1, 8).selectExpr(
        "cast(id AS string) AS contents", "if(id = 3999, 99, 1) AS priority"
    )

    with pytest.raises(
        PySparkException, match="column 'priority': row 499 of its partition has 99"
    ):
        sink.write(rows, batch="b")

    assert sink.contents() == [b"before"]
    receipt = sink.queue.receipt("b")
    assert (receipt.added, receipt.live) == (1, 1)
    assert sink.queue.stats().added_total == 1
    sink.wait_settled()
