"""Batch reads of results: every row as it was at one moment, and only what is asked for."""

import re
from datetime import UTC, datetime

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, In, IsNotNull

import queueber
from queueber.spark.options import ReadOptions
from queueber.spark.read.results import DeadPart, DonePart, ResultsReader
from queueber.spark.schemas import RESULT_COLUMNS
from queueber.testing import ServerProcess
from tests.spark.read.reading import complete, kill, load, sent_rows


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)


def reader_of(
    server: ServerProcess, queue: queueber.Queue, *wanted: str, push_filters: bool = True
) -> ResultsReader:
    options = ReadOptions(server.address, queue.name, None, push_filters=push_filters)
    return ResultsReader(options, wanted or tuple(RESULT_COLUMNS.names))


def test_done_and_dead_rows_have_all_their_columns(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    client.configure_queue(queue.name, attempts_max=2)
    (done,) = queue.add(b"1", key="k", attributes={"a": "ö", "b": ""}, batch="run")
    queue.poll().release()
    queue.poll().fail("once", delay=0)
    queue.poll().complete(b"\x00result")
    (dead,) = queue.add(b"2")
    for error in ("first", "last words"):
        queue.poll().fail(error, delay=0)
    (result,) = queue.read_results().results
    (letter,) = queue.peek("dead").items

    rows = {row.status: row for row in load(spark, server, queue).collect()}

    assert rows["done"] == Row(
        id=done.hex(),
        key="k",
        batch="run",
        status="done",
        result=bytearray(b"\x00result"),
        error=None,
        attempts=2,
        added_at=at(int.from_bytes(done[:6])),
        finished_at=at(result.completed_at_ms),
        partition=None,
        row=None,
        attributes={"a": "ö", "b": ""},
    )
    assert rows["dead"] == Row(
        id=dead.hex(),
        key=None,
        batch=None,
        status="dead",
        result=None,
        error="last words",
        attempts=2,
        added_at=at(int.from_bytes(dead[:6])),
        finished_at=at(letter.at_ms),
        partition=None,
        row=None,
        attributes={},
    )


def test_read_shows_the_moment_when_it_was_planned(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    """What is done later is not in it; what is deleted or redriven later still is."""
    client.configure_queue(queue.name, attempts_max=1)
    complete(queue, [b"1", b"2"])
    dead = kill(queue, 3)
    frame = load(spark, server, queue)
    assert frame.rdd.getNumPartitions() == 2

    complete(queue, [b"later"])
    queue.redrive(dead[:1])
    queue.cancel(dead[1:2])
    queue.ack_results("reader", 3)
    while queue.results_stats().first_offset < 3:
        pass  # the server deletes them in its own time

    rows = frame.collect()
    assert sorted(bytes(row.result) for row in rows if row.status == "done") == [b"1", b"2"]
    assert sorted(row.id for row in rows if row.status == "dead") == [each.hex() for each in dead]
    again = load(spark, server, queue).collect()
    assert {(row.status, row.id) for row in again} == {("dead", dead[2].hex())}


def test_ranges_are_read_side_by_side_and_have_every_row_once(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    client.configure_queue(queue.name, attempts_max=1)
    complete(queue, [b"%d" % n for n in range(22_000)])
    dead = kill(queue, 11_000)

    frame = load(spark, server, queue, "id string, status string, result binary")

    assert frame.rdd.getNumPartitions() == 4 + 2
    rows = frame.collect()
    assert sorted(int(row.result) for row in rows if row.status == "done") == list(range(22_000))
    assert sorted(row.id for row in rows if row.status == "dead") == [each.hex() for each in dead]
    one = load(spark, server, queue, "id string", splits=1)
    assert (one.rdd.getNumPartitions(), one.count()) == (2, 33_000)


def test_options_batch_and_status_reach_the_server(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    client.configure_queue(queue.name, attempts_max=1)
    complete(queue, [b"r"] * 4, "red")
    complete(queue, [b"g"] * 3, "green")
    complete(queue, [b""] * 2)
    kill(queue, 2, "red")
    kill(queue, 5)

    def count(**options: str) -> int:
        return load(spark, server, queue, "id string", **options).count()

    assert count() == 16
    assert (count(batch="red"), count(batch="green"), count(batch="blue")) == (6, 3, 0)
    assert (count(status="done"), count(status="dead")) == (9, 7)
    assert (count(batch="red", status="dead"), count(batch="green", status="dead")) == (2, 0)
    assert load(spark, server, queue, status="done").rdd.getNumPartitions() == 1
    red = ResultsReader(ReadOptions(server.address, queue.name, "red"), ("batch", "status"))
    assert sent_rows(red).to_pydict() == {
        "batch": ["red"] * 6,
        "status": ["done"] * 4 + ["dead"] * 2,
    }


# --- filters --------------------------------------------------------------------------------------


def status_is(word: str) -> Filter:
    return EqualTo(("status",), word)


def batch_is(*names: str) -> Filter:
    return In(("batch",), names) if len(names) > 1 else EqualTo(("batch",), names[0])


ALL = {"done red", "done green", "done", "dead red", "dead"}


@pytest.mark.parametrize(
    ("filters", "left", "sent"),
    [
        ([status_is("done")], 0, {"done red", "done green", "done"}),
        ([status_is("dead")], 0, {"dead red", "dead"}),
        ([status_is("lost")], 0, set()),
        ([In(("status",), ("done", "dead"))], 0, ALL),
        ([batch_is("red")], 0, {"done red", "dead red"}),
        ([batch_is("red", "green")], 0, {"done red", "done green", "dead red"}),
        ([batch_is("red", "green"), batch_is("green")], 0, {"done green"}),
        ([batch_is("red"), batch_is("green")], 0, set()),
        ([batch_is("red"), status_is("dead"), IsNotNull(("batch",))], 1, {"dead red"}),
        ([batch_is("a", "b", "c", "d", "e")], 1, ALL),
        ([EqualTo(("key",), "k")], 1, ALL),
    ],
)  # fmt: skip
def test_pushed_filters_leave_rows_at_the_server(
    server: ServerProcess,
    client: queueber.Client,
    queue: queueber.Queue,
    filters: list[Filter],
    left: int,
    sent: set[str],
) -> None:
    client.configure_queue(queue.name, attempts_max=1)
    for batch in ("red", "green", None):
        complete(queue, [b"r"], batch)
    for batch in ("red", None):
        kill(queue, 1, batch)
    reader = reader_of(server, queue, "status", "batch")

    assert len(list(reader.pushFilters(filters))) == left

    rows = sent_rows(reader).to_pylist()
    told = [f"{row['status']} {row['batch'] or ''}".strip() for row in rows]
    assert (set(told), len(told)) == (sent, len(sent))


def test_filters_are_pushed_through_spark_when_that_is_asked_for(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue
) -> None:
    complete(queue, [b"r"] * 3, "red")
    complete(queue, [b"g"] * 2, "green")

    def is_filtered_by_spark(push: str) -> bool:
        frame = load(spark, server, queue, push_filters=push).where("batch = 'red'")
        assert frame.count() == 3
        plan = frame._jdf.queryExecution().executedPlan().toString()
        return re.search(r"batch#\d+ = red", plan) is not None

    assert not is_filtered_by_spark(push="true")
    assert is_filtered_by_spark(push="false")


def test_filters_that_are_not_pushed_are_right_however_often_a_frame_is_used(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue
) -> None:
    """Spark plans the read of a frame once, with the filters of whichever use came last. That is
    why filters are pushed only for those who ask."""
    complete(queue, [b"r"] * 3, "red")
    complete(queue, [b"g"] * 2, "green")
    frame = load(spark, server, queue)

    assert frame.where("batch = 'red'").count() == 3
    assert frame.count() == 5
    both = frame.where("batch = 'red'").union(frame.where("batch = 'green'"))
    assert sorted(row.batch for row in both.collect()) == ["green"] * 2 + ["red"] * 3


# --- columns --------------------------------------------------------------------------------------


def test_schema_says_which_columns_are_sent_and_in_which_order(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x", key="k", attributes={"a": "1"}, batch="b")
    queue.poll().complete(bytes(1000))

    frame = load(spark, server, queue, "status string, key string")

    assert frame.columns == ["status", "key"]
    assert frame.collect() == [Row(status="done", key="k")]
    with queueber.connect(server.address) as client:
        page = client.queue(queue.name).read_results(without=["results", "batches", "attributes"])
    assert (page.results[0].key, page.results[0].result) == ("k", b"")


def test_columns_that_are_not_wanted_are_not_asked_for(
    server: ServerProcess, queue: queueber.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(queue, [b"r"])
    asked: list[object] = []
    read = queueber.Snapshot.read_columns

    def noted(self: queueber.Snapshot, *args: object, **options: object) -> object:
        asked.append({each.value for each in options["without"]})  # type: ignore[attr-defined]
        return read(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(queueber.Snapshot, "read_columns", noted)

    sent_rows(reader_of(server, queue, "id"))
    sent_rows(reader_of(server, queue, "result", "key"))

    assert asked == [
        {"results", "contents", "keys", "batches", "attributes"},
        {"contents", "batches", "attributes"},
    ]


def test_read_goes_on_when_its_snapshot_has_ended_unless_rows_are_gone(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    complete(queue, [b"1", b"2"])
    reader = reader_of(server, queue, "result")
    (part,) = reader.partitions()
    assert isinstance(part, DonePart)
    assert part.snapshot is not None
    queue.snapshot(part.snapshot).close()

    assert [batch.to_pydict() for batch in reader.read(part)] == [{"result": [b"1", b"2"]}]
    queue.ack_results("r", 2)
    while queue.results_stats().first_offset < 2:
        pass
    with pytest.raises(queueber.QueueberError, match=r"2 results of queue .* deleted before they"):
        list(reader.read(part))


def test_dead_rows_whose_snapshot_has_ended_are_an_error_that_says_so(
    server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    client.configure_queue(queue.name, attempts_max=1)
    kill(queue, 1)
    reader = reader_of(server, queue, "id")
    (part,) = reader.partitions()
    assert isinstance(part, DeadPart)
    queue.snapshot(part.snapshot).close()

    with pytest.raises(queueber.NotFound, match=r"has ended.*open another and read again"):
        list(reader.read(part))


def test_empty_queue_has_no_rows_and_keeps_no_snapshot(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.stats()
    for _ in range(20):  # more than there may be snapshots
        assert reader_of(server, queue).partitions() == []

    assert load(spark, server, queue).count() == 0


@pytest.mark.parametrize("setting", ["true", "false"])
@pytest.mark.parametrize("push", [True, False])
def test_read_works_with_either_setting_of_sparks_filter_pushdown(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue, setting: str, push: bool
) -> None:
    """Spark refuses readers that take filters while its setting is off, as it is by default."""
    complete(queue, [b"1", b"2"], batch="red")
    complete(queue, [b"3"], batch="blue")
    name = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, setting)
    try:
        frame = load(spark, server, queue, push_filters=push).where("batch = 'red'")
        found = sorted(bytes(row.result) for row in frame.collect())
    finally:
        spark.conf.set(name, str(before))

    assert found == [b"1", b"2"]
