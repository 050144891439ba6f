"""Writes of DataFrames: what is in the queue afterwards, by both methods."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, monotonically_increasing_id

import queueber
from queueber.ids import origin_of
from queueber.limits import MIB
from queueber.model import ItemState, Receipt
from tests.support.spark_sink import Gate, Sink, metered, wait_until

both_methods = pytest.mark.parametrize("method", ["bulk", "rpc"])


def numbered(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    """Rows whose contents tell where they are: partition << 33 | row."""
    numbers = spark.range(0, rows, 1, partitions)
    return numbers.select(monotonically_increasing_id().cast("string").alias("contents"))


def numbers_of(rows: int, partitions: int) -> list[bytes]:
    """What `numbered` has, in order of contents."""
    ends = [rows * n // partitions for n in range(partitions + 1)]
    return sorted(
        str(partition << 33 | row).encode()
        for partition in range(partitions)
        for row in range(ends[partition + 1] - ends[partition])
    )


@both_methods
def test_texts_arrive_as_utf8(spark: SparkSession, sink: Sink, method: str) -> None:
    texts = ["", "plain", "größe", "\x00 and 🚕"]

    sink.write(spark.createDataFrame([(each,) for each in texts], "contents string"), method=method)

    assert sink.contents() == sorted(each.encode() for each in texts)
    sink.wait_settled()


@both_methods
def test_bytes_arrive_as_they_are(spark: SparkSession, sink: Sink, method: str) -> None:
    values = [bytes(range(256)), b"", b"\x00", b"\xff" * 1000]

    sink.write(
        spark.createDataFrame([(each,) for each in values], "contents binary"), method=method
    )

    assert sink.contents() == sorted(values)
    assert sink.queue.stats().contents_bytes == sum(map(len, values))
    sink.wait_settled()


@both_methods
def test_every_column_reaches_its_item(spark: SparkSession, sink: Sink, method: str) -> None:
    """And what is null is as if the column were not there."""
    rows = spark.createDataFrame(
        [
            ("a", "key-a", 7, {"lang": "de", "leer": ""}, 600_000),
            ("b", None, None, None, None),
            ("c", "", 0, {}, 0),
            ("d", "key-d", 9, {"ü": "ß"}, None),
        ],
        "contents string, key string, priority int, attributes map<string,string>, delay_ms long",
    )
    before_ms = time.time() * 1000

    sink.write(rows, method=method, batch="night")

    after_ms = time.time() * 1000
    found = sink.items()
    assert [(i.contents, i.key, i.priority, i.attributes, i.batch, i.attempts) for i in found] == [
        (b"a", "key-a", 7, {"lang": "de", "leer": ""}, "night", 0),
        (b"b", "", 5, {}, "night", 0),
        (b"c", "", 0, {}, "night", 0),
        (b"d", "key-d", 9, {"ü": "ß"}, "night", 0),
    ]
    assert [item.contents for item in sink.queue.peek_all(ItemState.DELAYED)] == [b"a"]
    assert before_ms - 1 <= found[0].at_ms - 600_000 <= after_ms + 1
    assert all(before_ms - 1 <= item.added_at_ms <= after_ms + 1 for item in found)
    receipt = sink.queue.receipt("night")
    assert (receipt.added, receipt.live, receipt.complete) == (4, 4, False)
    sink.wait_settled()


@both_methods
@pytest.mark.parametrize("kind", ["byte", "short", "int", "long"])
def test_numbers_may_be_of_any_integer_type(
    spark: SparkSession, sink: Sink, method: str, kind: str
) -> None:
    rows = spark.createDataFrame(
        [("a", 1, 100), ("b", None, None)], f"contents string, priority {kind}, delay_ms {kind}"
    )

    sink.write(rows, method=method)

    assert [(item.contents, item.priority) for item in sink.items()] == [(b"a", 1), (b"b", 5)]
    leased = [*sink.queue.poll(1), *sink.queue.poll(1, wait=30)]
    assert [item.contents for item in leased] == [b"b", b"a"]


@both_methods
def test_visible_at_hides_until_then(spark: SparkSession, sink: Sink, method: str) -> None:
    """What is over, or missing, is visible at once; the session's time zone does not matter."""
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    rows = spark.createDataFrame(
        [
            ("past", datetime(1969, 7, 20, tzinfo=UTC)),
            ("now", None),
            ("later", later),
            ("soon", later - timedelta(hours=1, microseconds=1)),
        ],
        "contents string, visible_at timestamp",
    )

    sink.write(rows, method=method)

    ready = [item.contents for item in sink.queue.peek_all(ItemState.READY)]
    delayed = {i.contents: i.at_ms for i in sink.queue.peek_all(ItemState.DELAYED)}
    assert sorted(ready) == [b"now", b"past"]
    at_ms = int(later.timestamp()) * 1000
    # In the method rpc a delay is told, and counts from when the server hears of it.
    late_ms = 10_000 if method == "rpc" else 0
    assert delayed.keys() == {b"later", b"soon"}
    assert at_ms <= delayed[b"later"] <= at_ms + late_ms
    assert at_ms - 3_600_001 <= delayed[b"soon"] <= at_ms - 3_600_001 + late_ms
    assert (sink.queue.stats().ready, sink.queue.stats().delayed) == (2, 2)


@both_methods
def test_polls_get_loaded_items_by_priority(spark: SparkSession, sink: Sink, method: str) -> None:
    """They stand in line with those that were added before and after."""
    priorities = [3, 9, 0, 5, 9, 1]
    sink.queue.add(b"before", priority=4)

    rows = [(f"{priority} {n}", priority) for n, priority in enumerate(priorities)]
    sink.write(
        spark.createDataFrame(rows, "contents string, priority int").coalesce(1), method=method
    )
    sink.queue.add(b"after", priority=5)

    # One lease in eight takes the oldest; so many at once are one lease.
    assert [item.contents for item in sink.queue.poll(100)] == [
        b"9 1", b"9 4", b"5 3", b"after", b"before", b"3 0", b"1 5", b"0 2",
    ]  # fmt: skip


@both_methods
def test_ids_tell_partition_and_row(spark: SparkSession, sink: Sink, method: str) -> None:
    sink.write(numbered(spark, 3500, 3), method=method)

    origins = sink.origins()
    assert sorted(origins) == numbers_of(3500, 3)
    wrong = {
        contents: origin
        for contents, origin in origins.items()
        if origin != (int(contents) >> 33, int(contents) & (1 << 33) - 1)
    }
    assert wrong == {}


@both_methods
def test_writes_into_one_batch_are_counted_together(
    spark: SparkSession, sink: Sink, method: str
) -> None:
    sink.queue.add([b"x", b"y"], batch="all")

    sink.write(numbered(spark, 10, 2), method=method, batch="all")
    sink.write(numbered(spark, 25, 3), method=method, batch="all")
    sink.write(numbered(spark, 7, 1), method=method, batch="other")

    assert sink.contents() == sorted(
        [b"x", b"y", *numbers_of(10, 2), *numbers_of(25, 3), *numbers_of(7, 1)]
    )
    receipt, other = sink.queue.receipt("all"), sink.queue.receipt("other")
    assert (receipt.added, receipt.live, receipt.complete) == (37, 37, False)
    assert (other.added, other.live, other.complete) == (7, 7, False)
    while lease := sink.queue.poll(100):
        lease.remove()
    receipt = sink.queue.receipt("all")
    assert (receipt.done, receipt.complete) == (37, True)
    assert receipt.done_digest == receipt.added_digest
    sink.wait_settled()


@both_methods
def test_write_without_rows_adds_nothing(spark: SparkSession, sink: Sink, method: str) -> None:
    """Its batch is there, and complete: whoever waits for it has an answer."""
    sink.write(spark.createDataFrame([], "contents string"), method=method, batch="none")
    sink.write(numbered(spark, 0, 4), method=method, batch="none")

    receipt = sink.queue.receipt("none")
    assert (receipt.added, receipt.complete) == (0, True)
    assert sink.contents() == []
    assert sink.queue.stats().added_total == 0
    sink.wait_settled()


@both_methods
def test_partitions_without_rows_do_not_matter(
    spark: SparkSession, sink: Sink, method: str
) -> None:
    sink.write(numbered(spark, 2, 5), method=method, batch="few")

    assert sink.contents() == numbers_of(2, 5)
    assert sink.queue.receipt("few").added == 2
    sink.wait_settled()


def test_many_partitions_become_one_write(spark: SparkSession, sink: Sink) -> None:
    sink.write(numbered(spark, 500, 40), batch="many")

    assert sink.contents() == numbers_of(500, 40)
    assert sink.queue.receipt("many").added == 500
    sink.wait_settled()


@both_methods
def test_many_rows_of_a_partition_arrive_in_several_batches(
    spark: SparkSession, sink: Sink, method: str
) -> None:
    """More than Spark puts into one Arrow batch, and than a call brings."""
    sink.write(numbered(spark, 25_000, 2), method=method, batch="big")

    assert sink.contents() == numbers_of(25_000, 2)
    assert sink.queue.receipt("big").added == 25_000
    assert sink.queue.stats().added_total == 25_000


@pytest.mark.parametrize(
    "options", [{"method": "rpc"}, {"transfer": "auto"}, {"transfer": "stream"}]
)
def test_large_contents_arrive(spark: SparkSession, sink: Sink, options: dict[str, str]) -> None:
    """More than fits into a slice of rows, into a chunk, into a call."""
    large = spark.range(0, 40, 1, 2).selectExpr(
        f"concat(lpad(id, 4, '0'), repeat(char(97 + id % 26), {MIB} - 4)) AS contents"
    )

    sink.write(large, **options)

    found = 0
    while lease := sink.queue.poll(10):
        for item in lease:
            number = int(item.contents[:4])
            assert item.contents == b"%04d" % number + bytes([97 + number % 26]) * (MIB - 4)
            found += 1
        lease.remove()
    assert found == 40
    sink.wait_settled()


def test_streamed_files_bring_the_same_as_shared_ones(
    spark: SparkSession, sink: Sink, client: queueber.Client
) -> None:
    """Files that the server sees are not sent; with transfer=stream they are."""
    random = Random(4)
    schema = "contents binary, key string, priority int, attributes map<string,string>"
    rows = [(random.randbytes(2000), f"k{n}", n % 10, {"n": str(n)}) for n in range(2000)]
    frame = spark.createDataFrame(rows, schema)
    name = sink.queue.name + "-streamed"
    streamed = Sink(sink.server, client.queue(name))
    sent = {}

    for target, transfer in ((sink, "auto"), (streamed, "stream")):
        with metered(sink.server) as meter:
            target.write(frame, transfer=transfer, batch="b", address=meter.address)
            sent[transfer] = meter.sent

    assert sent["auto"] < 200_000 < 2000 * 2000 < sent["stream"]
    one, other = (
        [(i.contents, i.key, i.priority, i.attributes, origin_of(i.id)) for i in each.items()]
        for each in (sink, streamed)
    )
    assert one == other
    assert [row[:4] for row in one] == sorted(rows)
    assert streamed.queue.receipt("b").added == 2000
    streamed.wait_settled()


def test_directory_of_another_server_is_not_used(spark: SparkSession, sink: Sink) -> None:
    """An executor that sees such a directory, but not the server's token in it, sends its files."""
    load = sink.queue.load("mine", batch="b")
    Path(load.facts.directory, "token").write_bytes(b"another server's")
    random = Random(5)
    contents = sorted(random.randbytes(2000) for _ in range(1000))
    rows = spark.createDataFrame([(each,) for each in contents], "contents binary")

    with metered(sink.server) as meter:
        sink.write(rows, batch="b", write_id="mine", address=meter.address)

    assert meter.sent > 1000 * 2000
    assert sink.contents() == contents
    sink.wait_settled()


@both_methods
def test_rows_with_the_same_key_are_stored_once(
    spark: SparkSession, sink: Sink, method: str
) -> None:
    """Whether it came before, in the same partition, or in another one; and keys still count."""
    (earlier,) = sink.queue.add([b"earlier"], key=["k5"])
    rows = spark.range(0, 40, 1, 4).selectExpr(
        "cast(id AS string) AS contents", "if(id < 36, concat('k', id % 12), null) AS key"
    )

    sink.write(rows, method=method, batch="keyed")

    items = sink.items()
    assert sorted(item.key for item in items if item.key) == sorted(f"k{n}" for n in range(12))
    assert sorted(int(item.contents) for item in items if not item.key) == [36, 37, 38, 39]
    assert next(item.id for item in items if item.key == "k5") == earlier
    loaded = {item.key: int(item.contents) for item in items if item.key and item.key != "k5"}
    if method == "bulk":
        # Of rows with one key the first is meant.
        assert loaded == {f"k{n}": n for n in range(12) if n != 5}
    else:
        assert all(f"k{number % 12}" == key for key, number in loaded.items())
    receipt, stats = sink.queue.receipt("keyed"), sink.queue.stats()
    assert (receipt.added, receipt.live) == (15, 15)
    assert (stats.ready, stats.added_total, stats.duplicates_total) == (16, 16, 25)
    again = sink.queue.add([b"again", b"new"], key=["k3", "k99"])
    assert list(again.duplicates) == [True, False]
    assert again[0] == next(item.id for item in items if item.key == "k3")
    sink.wait_settled()


@both_methods
def test_second_write_under_a_write_id_adds_nothing(
    spark: SparkSession, sink: Sink, method: str
) -> None:
    """Even when its rows are others: the name says that it is the same write."""
    sink.write(numbered(spark, 100, 2), method=method, write_id="monday", batch="b")
    before = sink.items(), sink.queue.stats()

    sink.write(numbered(spark, 100, 2), method=method, write_id="monday", batch="b")
    sink.write(numbered(spark, 50, 3), method="bulk", write_id="monday", batch="b")

    assert (sink.items(), sink.queue.receipt("b").added) == (before[0], 100)
    assert sink.queue.stats().added_total == before[1].added_total == 100
    sink.write(numbered(spark, 100, 2), method=method, write_id="tuesday", batch="b")
    assert sink.contents() == sorted(numbers_of(100, 2) * 2)
    assert sink.queue.receipt("b").added == 200
    sink.wait_settled()


@both_methods
def test_statistics_are_those_of_adds(
    spark: SparkSession, sink: Sink, client: queueber.Client, method: str
) -> None:
    rows = [(f"contents {n}", f"key {n % 30}", n % 10, {"n": str(n)}) for n in range(50)]
    added = client.queue(sink.queue.name + "-added")
    added.add(
        [row[0].encode() for row in rows],
        key=[row[1] for row in rows],
        priority=[row[2] for row in rows],
        attributes=[row[3] for row in rows],
        delay=[0 if row[2] < 8 else 3600 for row in rows],
        batch="b",
    )
    frame = spark.createDataFrame(
        rows, "contents string, key string, priority int, attributes map<string,string>"
    )

    sink.write(
        frame.selectExpr("*", "if(priority < 8, 0, 3600000) AS delay_ms").coalesce(1),
        method=method,
        batch="b",
    )

    def counts(queue: queueber.Queue) -> list[int]:
        stats = queue.stats()
        return [
            stats.ready, stats.delayed, stats.leased, stats.dead, stats.contents_bytes,
            stats.added_total, stats.duplicates_total, stats.batches,
        ]  # fmt: skip

    assert counts(sink.queue) == counts(added)
    assert sink.queue.stats().ready == 24
    assert 0 <= sink.queue.stats().oldest_claimable_age_ms < 60_000


@both_methods
def test_waiting_poll_gets_what_is_written(spark: SparkSession, sink: Sink, method: str) -> None:
    with ThreadPoolExecutor() as pool:
        poll = pool.submit(sink.queue.poll, 100, wait=120)
        wait_until(lambda: sink.queue.stats().waiting_polls == 1)
        sink.write(numbered(spark, 3, 1), method=method)
        # The items are there when the write is over; whoever waited for them has them.
        lease = poll.result(timeout=5)

    assert sorted(item.contents for item in lease) == numbers_of(3, 1)


@both_methods
def test_batch_is_not_complete_before_the_commit(
    spark: SparkSession, sink: Sink, tmp_path: Path, method: str
) -> None:
    """Bulk shows nothing before; rows of the method rpc are there at once, but more may come."""
    gate = Gate(tmp_path, 1)

    def look() -> tuple[int, Receipt, int]:
        if method == "bulk":
            wait_until(lambda: [load.rows for load in sink.queue.loads()] == [10])
            assert len(list(sink.server.data_dir.glob("loads/*/*/*.sst"))) > 0
        else:
            wait_until(lambda: sink.queue.stats().ready == 10)
        seen = len(sink.queue.poll(100).remove())
        return seen, sink.queue.receipt("b"), sink.queue.stats().ready

    with gate.watched(look) as looked:
        sink.write(gate.hold(numbered(spark, 20, 2)), method=method, batch="b")

    seen, receipt, ready = looked.result()
    early = 0 if method == "bulk" else 10
    assert (seen, receipt.added, receipt.complete, ready) == (early, early, False, 0)
    assert sink.queue.loads() == []
    assert len(sink.queue.poll(100).remove()) == 20 - seen
    receipt = sink.queue.receipt("b")
    assert (receipt.added, receipt.done, receipt.complete) == (20, 20, True)
    sink.wait_settled()


def test_rows_beyond_the_queues_limit_fail_the_write_as_a_whole(
    spark: SparkSession, sink: Sink, client: queueber.Client
) -> None:
    client.configure_queue(sink.queue.name, items_max=50)

    with pytest.raises(Exception, match=r"60 more would pass its limit of 50"):
        sink.write(numbered(spark, 60, 2), batch="b")
    sink.assert_untouched()

    sink.write(numbered(spark, 50, 2), batch="b")
    assert sink.contents() == numbers_of(50, 2)
    sink.wait_settled()


@both_methods
def test_order_of_columns_does_not_matter(spark: SparkSession, sink: Sink, method: str) -> None:
    rows = spark.createDataFrame([(1, "k", "x")], "priority int, key string, contents string")

    sink.write(rows.select(col("key"), col("priority"), col("contents")), method=method)

    assert [(i.contents, i.key, i.priority) for i in sink.items()] == [(b"x", "k", 1)]


def test_slow_task_keeps_its_load_alive(spark: SparkSession, sink: Sink, tmp_path: Path) -> None:
    """The time of a stage is up when nobody is there any more, not when rows are slow to come."""
    gate = Gate(tmp_path, 1)

    def look() -> None:
        # The driver allows more than that, until the first task is there.
        wait_until(lambda: sink.queue.loads()[0].expires_at_ms < time.time() * 1000 + 60_000)
        first_end_ms = sink.queue.loads()[0].expires_at_ms
        wait_until(lambda: time.time() * 1000 > first_end_ms + 1000)

    with gate.watched(look) as looked:
        sink.write(gate.hold(numbered(spark, 20, 2)), batch="b", stage_timeout=4)

    looked.result()
    assert sink.contents() == numbers_of(20, 2)
    assert sink.queue.receipt("b").added == 20
    sink.wait_settled()
