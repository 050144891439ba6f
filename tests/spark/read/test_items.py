"""The queue as a table: every item as of one moment, with nothing leased."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, In

import queueber
from queueber.spark.options import ReadOptions
from queueber.spark.read.items import ItemsPart, ItemsReader
from queueber.testing import ServerProcess
from tests.spark.read.reading import kill, load, sent_rows


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)


def reader_of(
    server: ServerProcess, queue: queueber.Queue, *wanted: str, push_filters: bool = False
) -> ItemsReader:
    options = ReadOptions(
        server.address, queue.name, None, table="items", push_filters=push_filters
    )
    return ItemsReader(options, wanted)


def one_of_each(client: queueber.Client, queue: queueber.Queue) -> dict[str, bytes]:
    client.configure_queue(queue.name, attempts_max=1)
    (dead,) = kill(queue, 1)
    (leased,) = queue.add(b"leased")
    queue.poll(lease=1000)
    (delayed,) = queue.add(b"delayed", delay=500)
    (ready,) = queue.add(b"ready", key="k", priority=8, attributes={"a": "1"}, batch="b")
    return {"ready": ready, "delayed": delayed, "leased": leased, "dead": dead}


def test_every_state_is_shown_with_all_its_columns_and_nothing_is_leased(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    ids = one_of_each(client, queue)
    before = queue.stats()

    rows = {row.state: row for row in load(spark, server, queue, table="items").collect()}

    after = queue.stats()
    assert {state: row.id for state, row in rows.items()} == {s: i.hex() for s, i in ids.items()}
    assert (after.leases, after.polled_total, after.ready) == (
        before.leases,
        before.polled_total,
        before.ready,
    )
    (peeked,) = queue.peek("ready").items
    ready = rows["ready"].asDict()
    assert 0 <= ready.pop("age_seconds") < 60
    assert ready == {
        "id": ids["ready"].hex(),
        "key": "k",
        "batch": "b",
        "state": "ready",
        "contents": bytearray(b"ready"),
        "priority": 8,
        "attempts": 0,
        "deliveries": 0,
        "added_at": at(peeked.added_at_ms),
        "at": at(peeked.at_ms),
        "lease": None,
        "reason": None,
        "last_error": None,
        "partition": None,
        "row": None,
        "attributes": {"a": "1"},
        "after": [],
        "after_batch": None,
    }
    (held,) = queue.peek("leased").items
    assert (rows["leased"].lease, rows["leased"].at) == (held.lease_id.hex(), at(held.at_ms))
    assert rows["delayed"].at - rows["delayed"].added_at == timedelta(seconds=500)
    (letter,) = queue.peek("dead").items
    assert (rows["dead"].reason, rows["dead"].last_error) == (letter.reason, "it broke")
    assert (rows["dead"].attempts, rows["dead"].at) == (1, at(letter.at_ms))
    assert rows["dead"].reason


def test_items_that_wait_are_shown_with_what_they_wait_for(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue
) -> None:
    first, second = queue.add([b"first", b"second"], batch="night")
    (waits,) = queue.add(b"third", after=[first, second], after_batch="night")
    queue.add(b"later", delay=500)

    read = load(spark, server, queue, table="items").where("state = 'delayed'")
    rows = {row.contents: row for row in read.collect()}

    waiting, delayed = rows[b"third"], rows[b"later"]
    assert (waiting.id, waiting.after_batch) == (waits.hex(), "night")
    assert waiting.after == [first.hex(), second.hex()]
    assert (delayed.after, delayed.after_batch) == ([], None)


def test_table_is_as_of_the_moment_when_it_was_planned(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    ids = one_of_each(client, queue)
    frame = load(spark, server, queue, "id string, state string, contents binary", table="items")
    assert frame.rdd.getNumPartitions() == 4

    queue.redrive([ids["dead"]])
    queue.cancel([ids["delayed"]])
    queue.poll(10)
    queue.add(b"later")

    rows = frame.collect()
    assert {row.state: row.id for row in rows} == {s: i.hex() for s, i in ids.items()}
    assert bytes(next(row.contents for row in rows if row.state == "delayed")) == b"delayed"


@pytest.mark.parametrize("priorities", [[5], [0, 5, 9]], ids=["one level", "several levels"])
def test_many_items_are_read_in_ranges_that_have_each_once(
    spark: SparkSession, server: ServerProcess, queue: queueber.Queue, priorities: list[int]
) -> None:
    ids: list[bytes] = []
    for n in range(24):
        ids += queue.add([b"x"] * 1000, priority=priorities[n % len(priorities)])

    frame = load(spark, server, queue, "id string", table="items", splits=4)

    assert 3 <= frame.rdd.getNumPartitions() <= 4
    assert sorted(row.id for row in frame.collect()) == sorted(each.hex() for each in ids)
    parts = [p for p in reader_of(server, queue, "id").partitions() if isinstance(p, ItemsPart)]
    sizes = [sum(map(len, reader_of(server, queue, "id").read(part))) for part in parts]
    assert sum(sizes) == 24_000
    assert max(sizes) < 18_000


def test_contents_are_not_read_unless_they_are_wanted(
    server: ServerProcess, queue: queueber.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add(b"x" * 1000)
    asked: list[set[str]] = []
    scan = queueber.Snapshot.scan_columns

    def noted(self: queueber.Snapshot, *args: object, **options: object) -> object:
        asked.append({each.value for each in options["without"]})  # type: ignore[attr-defined]
        return scan(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(queueber.Snapshot, "scan_columns", noted)

    sent_rows(reader_of(server, queue, "id", "state"))
    sent_rows(reader_of(server, queue, "contents"))

    assert ["contents" in each for each in asked] == [True, False]


@pytest.mark.parametrize(
    ("filters", "left", "sent"),
    [
        ([EqualTo(("state",), "dead")], 0, ["dead"]),
        ([In(("state",), ("ready", "leased"))], 0, ["ready", "leased"]),
        ([EqualTo(("batch",), "b")], 0, ["ready"]),
        ([EqualTo(("batch",), "b"), EqualTo(("batch",), "c")], 0, []),
        ([In(("batch",), ("b", "c"))], 1, ["ready", "delayed", "leased", "dead"]),
    ],
)
def test_pushed_filters_leave_items_at_the_server(
    server: ServerProcess,
    client: queueber.Client,
    queue: queueber.Queue,
    filters: list[Filter],
    left: int,
    sent: list[str],
) -> None:
    one_of_each(client, queue)
    reader = reader_of(server, queue, "state", push_filters=True)

    assert len(list(reader.pushFilters(filters))) == left
    assert [row["state"] for row in sent_rows(reader).to_pylist()] == sent


def test_option_batch_reaches_the_server(
    spark: SparkSession, server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    one_of_each(client, queue)

    frame = load(spark, server, queue, "state string, batch string", table="items", batch="b")

    assert frame.collect() == [Row(state="ready", batch="b")]
