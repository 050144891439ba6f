"""Loads through both faces of the client, against a real server."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import trio

import queueber
from queueber import LoadRef, LoadState, Origin, PartRef, Rows
from queueber.ids import origin_of
from queueber.limits import LOAD_CHUNK_BYTES
from queueber.testing import ServerProcess, running_server
from tests.support.loading import built_part, stage_part

PART = PartRef(0, "first")


def rows(count: int) -> Rows:
    return Rows([b"%d" % n for n in range(count)])


def contents_of(queue: queueber.Queue, count: int) -> list[bytes]:
    return [item.contents for item in queue.poll(count, wait=0)]


def test_load_is_staged_in_parts_and_committed_at_once(queue: queueber.Queue) -> None:
    load = queue.load("nightly", batch="b", timeout=60)
    stage_part(load, PartRef(0, "a"), rows(3))
    stage_part(load, PartRef(2, "a"), rows(2))
    assert [(each.ref.name, each.rows, each.state) for each in queue.loads()] == [
        ("nightly", 5, LoadState.STAGING)
    ]
    assert queue.stats().ready == 0
    assert not queue.receipt("b").complete

    committed = load.commit([PartRef(0, "a"), PartRef(2, "a")])

    assert (committed.state, committed.rows, committed.duplicates) == (LoadState.COMMITTED, 5, 0)
    lease = queue.poll(10)
    assert [origin_of(each) for each in lease.ids] == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)]
    lease.remove()
    assert queue.receipt("b").complete
    assert queue.loads() == []


def test_load_that_must_exist_is_not_begun(queue: queueber.Queue) -> None:
    with pytest.raises(queueber.NotFound, match="'nightly' is not under way"):
        queue.load("nightly", must_exist=True)
    assert queue.loads() == []

    begun = queue.load("nightly")

    assert queue.load("nightly", must_exist=True).facts.id_head == begun.facts.id_head


def test_rows_have_all_that_an_add_may_say_of_them(
    client: queueber.Client, queue: queueber.Queue
) -> None:
    client.create_queue(queue.name, dedup_window=60)
    queue.add(b"there", key="k1")
    load = queue.load("nightly")
    given = Rows(
        contents=[b"urgent", b"late", b"twice", b"plain"],
        visible_at_ms=[0, load.facts.started_at_ms + 3_600_000, 0, 0],
        priorities=[9, 5, 5, 5],
        keys=["k2", "", "k1", ""],
        attributes=[{"a": "1"}, {}, {}, {}],
    )
    stage_part(load, PART, given)

    committed = load.commit([PART])

    assert (committed.rows, committed.duplicates) == (3, 1)
    first, second, third = queue.poll(10)
    assert (first.contents, first.key, first.attributes) == (b"urgent", "k2", {"a": "1"})
    assert [second.contents, third.contents] == [b"there", b"plain"]
    assert queue.stats().delayed == 1
    assert queue.add(b"again", key="k2").duplicates == (True,)


def test_large_files_are_sent_in_chunks(queue: queueber.Queue) -> None:
    load = queue.load("nightly")
    given = Rows([Random(n).randbytes(100_000) for n in range(60)])
    part, files = built_part(load.facts, PART, given)
    assert max(map(len, files.values())) > 5 * LOAD_CHUNK_BYTES

    for name, held in files.items():
        load.stage(PART, name, held)
    load.finish_part(part)
    load.commit([PART])

    assert sorted(item.contents for item in queue.poll(60)) == sorted(given.contents)


def test_whoever_begins_a_load_again_joins_it_from_another_connection(
    queue: queueber.Queue, server: ServerProcess
) -> None:
    ours = queue.load("nightly", batch="b")
    with queueber.connect(server.address) as other:
        theirs = other.queue(queue.name).load("nightly", batch="b")
        stage_part(theirs, PART, rows(3))

    assert theirs.facts.id_head == ours.facts.id_head
    assert ours.commit([PART]).rows == 3
    queue.load("another", batch="b")
    with pytest.raises(queueber.Aborted, match="adds to batch 'b', not to 'c'"):
        queue.load("another", batch="c")


def test_aborted_load_leaves_nothing(queue: queueber.Queue) -> None:
    load = queue.load("nightly")
    stage_part(load, PART, rows(3))

    assert load.abort()

    assert not load.abort()
    assert not queue.abort_load("nightly")
    with pytest.raises(queueber.NotFound, match="'nightly' is not under way"):
        load.commit([PART])
    assert (queue.stats().ready, queue.loads()) == (0, [])
    # The server removes the files in the background.
    give_up_at = time.monotonic() + 10
    while Path(load.facts.directory).exists() and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert not Path(load.facts.directory).exists()


def test_load_of_another_process_is_aborted_by_name_and_epoch(queue: queueber.Queue) -> None:
    queue.load("nightly", epoch=3)

    assert not queue.abort_load("nightly")
    assert queue.abort_load("nightly", epoch=3)


def test_commit_is_repeated_by_itself_when_the_server_restarts(tmp_path: Path) -> None:
    with (
        running_server(data_dir=tmp_path / "data") as server,
        queueber.connect(server.address, retry_timeout=30) as client,
    ):
        queue = client.queue("loaded")
        load = queue.load("nightly")
        stage_part(load, PART, rows(3))
        server.kill()
        restart = threading.Timer(0.1, server.start)
        restart.start()

        committed = load.commit([PART])

        restart.join()
        assert (committed.rows, queue.stats().ready) == (3, 3)
        assert server.stop() == 0
        server.start()
        assert load.commit([PART]) == committed
        assert queue.load("nightly").is_committed
        assert contents_of(queue, 10) == [b"0", b"1", b"2"]


def test_part_that_was_staged_before_a_restart_is_committed_after_it(tmp_path: Path) -> None:
    with (
        running_server(data_dir=tmp_path / "data") as server,
        queueber.connect(server.address, retry_timeout=30) as client,
    ):
        queue = client.queue("loaded")
        load = queue.load("nightly")
        part, files = built_part(load.facts, PART, rows(3))
        first, *others = files
        load.stage(PART, first, files[first])
        server.kill()
        server.start()

        for name in [first, *others]:
            load.stage(PART, name, files[name])
        load.finish_part(part)

        assert load.commit([PART]).rows == 3


def test_awaited_face_does_the_same(queue: queueber.Queue, server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            awaited = client.queue(queue.name)
            load = await awaited.load("nightly", batch="b", timeout=60)
            part, files = built_part(load.facts, PART, rows(3))
            for name, held in files.items():
                await load.stage(PART, name, held)
            await load.finish_part(part)
            assert [each.rows for each in await awaited.loads()] == [3]

            committed = await load.commit([PART])

            assert (committed.rows, load.is_committed, load.ref) == (3, False, LoadRef("nightly"))
            assert (await awaited.load("nightly")).is_committed
            assert not await load.abort()
            await awaited.load("other", epoch=2)
            assert await awaited.abort_load("other", epoch=2)

    trio.run(main)
    assert contents_of(queue, 10) == [b"0", b"1", b"2"]


# --- adds that belong to a load -------------------------------------------------------------------


def test_ids_of_adds_with_an_origin_tell_partition_and_row(queue: queueber.Queue) -> None:
    load = queue.load("nightly")

    ids = queue.add([b"a", b"b"], origin=Origin(load.ref, partition=5, row=100))

    assert [origin_of(each) for each in ids] == [(5, 100), (5, 101)]
    assert origin_of(queue.add(b"plain")[0]) is None
    load.abort()
    with pytest.raises(queueber.NotFound, match="'nightly' is not under way"):
        queue.add(b"late", origin=Origin(load.ref, 5, 102))
    assert queue.stats().ready == 3


def test_concurrent_adds_with_the_same_origin_keep_it(queue: queueber.Queue) -> None:
    """Adds that wait are joined; these must not be, or their ids would tell nothing."""
    load = queue.load("nightly")
    found: list[tuple[int, int] | None] = []

    def add() -> None:
        origin = Origin(load.ref, 1, 7)
        found.extend(origin_of(queue.add(b"x", origin=origin)[0]) for _ in range(20))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [(1, 7)] * 160


# --- refusals -------------------------------------------------------------------------------------


def test_bad_input_is_refused_before_it_is_sent(queue: queueber.Queue) -> None:
    load = queue.load("nightly")
    cases: dict[str, Callable[[], object]] = {
        r"load: it is empty; give 1 to 256 bytes": lambda: queue.load(""),
        r"load: 7 is not text": lambda: queue.load(7),  # type: ignore[arg-type]
        r"load: it has 257 bytes; the limit is 256": lambda: queue.load("a" * 257),
        r"epoch: -1 is not a number, 0 or more": lambda: queue.load("x", epoch=-1),
        r"batch: it is empty": lambda: queue.load("x", batch=""),
        r"timeout: 0 is too short": lambda: queue.load("x", timeout=0),
        r"timeout: 604801 s is too long; the limit is 604800": lambda: queue.load(
            "x", timeout=604_801
        ),
        r"part: 3 is not a PartRef": lambda: load.stage(3, "a.sst", b"x"),  # type: ignore[arg-type]
        r"partition: 16777216 is too many; the limit is 16777215": lambda: load.commit(
            [PartRef(1 << 24, "a")]
        ),
        r"attempt: it is empty": lambda: load.commit([PartRef(0, "")]),
        r"file: it is empty": lambda: load.stage(PART, "", b"x"),
        r"data: str is not bytes": lambda: load.stage(PART, "a.sst", "x"),  # type: ignore[arg-type]
        r"origin: 'o' is not an Origin": lambda: queue.add(b"x", origin="o"),  # type: ignore[arg-type]
        r"origin.partition: 16777216 is too many": lambda: queue.add(
            b"x", origin=Origin(load.ref, 1 << 24, 0)
        ),
        r"origin.row: 4294967295 is too many; the limit is 4294967294": lambda: queue.add(
            [b"x", b"y"], origin=Origin(load.ref, 0, (1 << 32) - 1)
        ),
    }
    for told, call in cases.items():
        with pytest.raises(queueber.InvalidArgument, match=told):
            call()

    assert [each.ref for each in queue.loads()] == [load.ref]
    assert queue.stats().ready == 0


def test_what_only_the_server_knows_to_be_wrong_is_refused_by_it(queue: queueber.Queue) -> None:
    load = queue.load("nightly")
    part, files = built_part(load.facts, PART, rows(3))

    with pytest.raises(queueber.InvalidArgument, match=r"file: 'A\.sst' is no name for a file"):
        load.stage(PART, "A.sst", b"x")
    with pytest.raises(queueber.InvalidArgument, match="was announced, but is not there"):
        load.finish_part(part)
    name = next(iter(files))
    load.stage(PART, name, b"no SST file")
    with pytest.raises(queueber.InvalidArgument, match="has 11 bytes, not"):
        load.finish_part(part)
    with pytest.raises(queueber.InvalidArgument, match="was not finished"):
        load.commit([PART])

    assert queue.stats().ready == 0
