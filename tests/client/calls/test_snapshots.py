"""Snapshots, and results by batch and range, over a real connection."""

import threading
import time
from pathlib import Path

import pytest
import trio

import queueber
from queueber.testing import ServerProcess, running_server


def complete(queue: queueber.Queue, results: list[bytes], batch: str | None = None) -> None:
    queue.add([b"x"] * len(results), batch=batch, attributes={"of": batch or "none"})
    assert all(queue.poll(len(results)).complete(results))


def test_snapshot_shows_items_and_results_as_they_were(queue: queueber.Queue) -> None:
    complete(queue, [b"1", b"2"], batch="b")
    ids = queue.add([b"c", b"d"], key=["k1", "k2"], attributes={"a": "1"}, priority=7, batch="b")
    with queue.open_snapshot() as snapshot:
        queue.cancel(ids)
        queue.ack_results("reader", 2)
        complete(queue, [b"3"])

        page = snapshot.scan("ready")
        read = snapshot.read_results()

    assert (snapshot.info.ready, snapshot.info.next_offset, page.next) == (2, 2, b"")
    assert [(each.id, each.contents, each.key) for each in page.items] == [
        (ids[0], b"c", "k1"),
        (ids[1], b"d", "k2"),
    ]
    (first, _) = page.items
    assert (first.attributes, first.batch, first.priority) == ({"a": "1"}, "b", 7)
    assert [(r.result, r.batch, r.attributes) for r in read.results] == [
        (b"1", "b", {"of": "b"}),
        (b"2", "b", {"of": "b"}),
    ]
    assert queue.stats().ready == 0


def test_scan_tells_what_items_waited_for_at_that_moment(queue: queueber.Queue) -> None:
    first, second = queue.add([b"first", b"second"], batch="night")
    (waits,) = queue.add(b"third", after=[first, second], after_batch="night")
    queue.add(b"later", delay=500, attempts=3)

    with queue.open_snapshot() as snapshot:
        queue.poll(2).complete([b"", b""])
        found = {item.contents: item for item in snapshot.scan("delayed").items}
        columns = snapshot.scan_columns("ready")

    assert found[b"third"].id == waits
    assert found[b"third"].after == (first, second)
    assert (found[b"third"].after_batch, found[b"later"].after_batch) == ("night", "")
    assert (found[b"later"].after, found[b"later"].attempts_max) == ((), None)
    assert (columns.after, columns.after_batches) == ([], [])


def test_results_that_were_deleted_before_a_snapshot_are_counted_over_all_its_pages(
    queue: queueber.Queue,
) -> None:
    complete(queue, [b"1", b"2"])
    queue.ack_results("reader", 2)
    while queue.results_stats().first_offset < 2:
        time.sleep(0.01)
    for _ in range(11):
        complete(queue, [b"x"] * 1000)
    with queue.open_snapshot() as snapshot:
        # The server looks at 10,000 results a call, so this is read in two.
        read = snapshot.read_results(0, batch="another")

    assert snapshot.info.first_offset == 2
    assert (read.results, read.missed, read.next_offset) == ([], 2, 11_002)


def test_columns_hold_what_the_rows_hold(queue: queueber.Queue) -> None:
    complete(queue, [b"1", b"2"], batch="b")
    queue.add([b"c", b"d"], key=["k1", None], attributes=[{"a": "1"}, None], priority=7)
    with queue.open_snapshot() as snapshot:
        page, items = snapshot.scan("ready"), snapshot.scan_columns("ready")
        read, results = snapshot.read_results(), snapshot.read_columns(without="attributes")
        empty = snapshot.scan_columns("dead")

    assert [*zip(items.ids, items.contents, items.keys, items.priorities, strict=True)] == [
        (each.id, each.contents, each.key, each.priority) for each in page.items
    ]
    assert [*items.attributes] == [{"a": "1"}, {}]
    assert [*items.last_errors] == ["", ""]
    assert (items.next, empty.next, [*empty.contents]) == (b"", b"", [])
    assert [*zip(results.offsets, results.ids, results.results, strict=True)] == [
        (each.offset, each.id, each.result) for each in read.results
    ]
    assert [*results.attributes] == [{}, {}]
    assert queue.read_columns(1).next_offset == results.next_offset == 2
    assert [*queue.read_columns(1).batches] == ["b"]


def test_snapshot_is_read_in_parts_by_somebody_else_over_another_connection(
    queue: queueber.Queue, server: ServerProcess
) -> None:
    ids = queue.add([b"%d" % n for n in range(600)])
    info = queue.open_snapshot().info

    with queueber.connect(server.address) as other:
        theirs = other.queue(queue.name).snapshot(info)
        cut = theirs.scan("ready", limit=100).next
        parts = [
            list(theirs.scan_all("ready", before=cut)),
            list(theirs.scan_all("ready", after=cut, without="contents")),
        ]
        assert theirs.close()

    assert [len(part) for part in parts] == [100, 500]
    assert [each.id for part in parts for each in part] == list(ids)
    assert {each.contents for each in parts[1]} == {b""}
    with pytest.raises(queueber.NotFound, match="the snapshot has ended"):
        queue.snapshot(info).scan("ready")


def test_snapshot_does_not_outlive_its_server(tmp_path: Path) -> None:
    with (
        running_server(data_dir=tmp_path / "data") as server,
        queueber.connect(server.address) as client,
    ):
        queue = client.queue()
        queue.add(b"x")
        snapshot = queue.open_snapshot()
        assert server.stop() == 0  # it lets go of the store
        server.start()

        with pytest.raises(queueber.NotFound, match=r"has ended.*open another and read again"):
            snapshot.scan("ready")
        assert [each.contents for each in queue.open_snapshot().scan_all()] == [b"x"]


def test_scan_of_a_batch_passes_over_pages_without_any_of_it(queue: queueber.Queue) -> None:
    queue.add([b"x"] * 5000)
    wanted = queue.add([b"y"] * 3, batch="b")
    queue.add([b"x"] * 10)

    with queue.open_snapshot() as snapshot:
        page = snapshot.scan("ready", batch="b", limit=2)
        rest = snapshot.scan("ready", batch="b", after=page.next)

    assert [each.id for each in [*page.items, *rest.items]] == list(wanted)
    assert rest.next == b""


def test_results_of_a_batch_are_read_alone_and_before_an_offset(queue: queueber.Queue) -> None:
    for batch in ("red", None, "green", "red"):
        complete(queue, [b"%d" % n for n in range(2)], batch)

    red = queue.read_results(batch="red")
    early = queue.read_results(batch="red", before=7, without=["results", "attributes"])

    assert [each.offset for each in red.results] == [0, 1, 6, 7]
    assert [each.offset for each in early.results] == [0, 1, 6]
    assert {(each.result, each.batch, len(each.attributes)) for each in early.results} == {
        (b"", "red", 0)
    }
    assert queue.read_results(batch="blue").results == []
    assert queue.read_results(6, before=6, wait=30).results == []


def test_read_of_a_batch_finds_it_behind_any_number_of_others(queue: queueber.Queue) -> None:
    for _ in range(21):  # more than the server looks at in one call
        complete(queue, [b"other"] * 500)
    complete(queue, [b"mine"], "red")

    (result,) = queue.read_results(batch="red").results

    assert (result.offset, result.result) == (10_500, b"mine")


def test_read_of_a_batch_waits_for_one_of_it(queue: queueber.Queue) -> None:
    complete(queue, [b"other"])

    def later() -> None:
        complete(queue, [b"other"])
        complete(queue, [b"mine"], "red")

    timer = threading.Timer(0.1, later)
    timer.start()

    (result,) = queue.read_results(batch="red", wait=30).results
    timer.join()  # its last answer may still be under way

    assert (result.offset, result.result) == (2, b"mine")


def test_read_of_a_batch_gives_up_when_the_time_is_up(queue: queueber.Queue) -> None:
    complete(queue, [b"other"])
    started = time.monotonic()

    read = queue.read_results(batch="red", wait=0.2)

    assert (read.results, read.next_offset) == ([], 1)
    assert 0.19 <= time.monotonic() - started < 10


def test_named_reader_of_a_batch_gets_it_from_where_it_acknowledged(queue: queueber.Queue) -> None:
    for batch in ("red", "green", "red"):
        complete(queue, [batch.encode()], batch)
    queue.ack_results("r", 1)

    read = queue.read_results(reader="r", batch="red")

    assert [each.offset for each in read.results] == [2]
    assert read.next_offset == 3


def test_snapshot_in_trio(server: ServerProcess, queue: queueber.Queue) -> None:
    queue.add([b"1", b"2"])

    async def main() -> list[bytes]:
        async with (
            queueber.connect_async(server.address) as client,
            await client.queue(queue.name).open_snapshot() as snapshot,
        ):
            assert (await snapshot.scan("dead")).items == []
            assert (await snapshot.read_results()).results == []
            return [each.contents async for each in snapshot.scan_all()]

    assert trio.run(main) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda q: q.read_results(before=0), "before: 0 is not a number, 1 or more"),
        (lambda q: q.read_results(batch=""), "batch: it is empty"),
        (lambda q: q.read_results(without=["nothing"]), "without: 'nothing' is none of results,"),
        (lambda q: q.open_snapshot().scan("lost"), "state: 'lost' is none of"),
        (lambda q: q.open_snapshot().scan(after="x"), "after: 'x' is not the `next`"),
        (lambda q: q.open_snapshot().scan(limit=251), "limit: 251 is too many; the limit is 250"),
        (lambda q: q.open_snapshot().read_results(9), "offset is 9; the limit is 0"),
    ],
)
def test_bad_arguments_are_named(queue: queueber.Queue, call: object, told: str) -> None:
    with pytest.raises(queueber.InvalidArgument, match=told):
        call(queue)  # type: ignore[operator]


def test_ranges_of_a_split_have_every_item_once(queue: queueber.Queue) -> None:
    for priority in (1, 5, 9):
        queue.add([b"x"] * 200, priority=priority)
    with queue.open_snapshot() as snapshot:
        ranges = snapshot.split("ready", 4)
        parts = [
            list(snapshot.scan_all("ready", after=each.after, before=each.before))
            for each in ranges
        ]
        whole = list(snapshot.scan_all("ready"))
        nothing = snapshot.split("dead", 4)

    assert 2 <= len(ranges) <= 4
    assert all(parts)
    assert [each for part in parts for each in part] == whole
    assert nothing == [queueber.SnapshotRange()]


@pytest.mark.parametrize("parts", [0, 10_001, "4"])
def test_split_refuses_a_number_of_parts(queue: queueber.Queue, parts: int) -> None:
    with (
        queue.open_snapshot() as snapshot,
        pytest.raises(queueber.InvalidArgument, match="parts: "),
    ):
        snapshot.split("ready", parts)
