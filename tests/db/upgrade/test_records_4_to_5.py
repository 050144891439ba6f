"""Batches add up after the upgrade as before, and loads that were under way leave nothing."""

from pathlib import Path
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.records import loads
from queueber.db.records.keys import due_part, text_digest
from queueber.db.records.loads import LoadedRecord
from queueber.db.records.queues import decode_counters
from queueber.db.records.remembered import (
    DIGEST_MODULUS,
    FORGET_BATCH,
    BatchRecord,
    decode_batch,
    encode_batch,
    ids_digest,
)
from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade.records_4_to_5 import HalfCommitted
from queueber.db.upgrade.stores import DamagedStore, Work
from queueber.db.upgrade.upgrading import upgrade
from queueber.ids import IdSource
from queueber.limits import BATCH_KEEP_MS
from queueber.model import LoadRef
from tests.support import format_4
from tests.support.format_4 import NOW_MS, Item, Queue, put_entries, random_queue, write_store
from tests.support.upgraded import entries

LATER_MS = NOW_MS + 77


def upgraded(data: Path) -> tuple[RocksStore, list[str]]:
    work = Work(LATER_MS)
    assert upgrade(data, work, lambda store: []) is not None
    return RocksStore(data, read_only=True), work.notes


def batches(store: RocksStore, queue: Queue) -> dict[int, BatchRecord]:
    found = entries(store, Family.BATCHES, queue.prefix)
    return {int.from_bytes(key): decode_batch(value) for key, value in found}


def digest(items: list[Item]) -> int:
    return sum(ids_digest(item.item_id, 1) for item in items) % DIGEST_MODULUS


@pytest.mark.parametrize("seed", range(10))
def test_batches_have_their_items_and_add_up(folder: Path, seed: int) -> None:
    queue = random_queue(Random(seed), 1)
    write_store(folder / "data", [queue])

    store, _ = upgraded(folder / "data")

    with store:
        found = batches(store, queue)
    empty = {number for number, record in queue.batches.items() if not record.changed_at_ms}
    assert set(found) == set(queue.batches) - {
        number for number in empty if not queue.batches[number].added
    }
    for number, record in found.items():
        before = queue.batches[number]
        of_it = [item for item in queue.items if item.batch == number]
        live = [item for item in of_it if item.state != "dead"]
        dead = [item for item in of_it if item.state == "dead"]
        assert (record.added, record.done, record.dead) == (before.added, before.done, before.dead)
        assert record.loads == 0
        assert record.done_digest == before.done_digest % DIGEST_MODULUS
        ended = record.done_digest + record.dead_digest
        assert (record.added_digest - ended - digest(live)) % DIGEST_MODULUS == 0
        # What is left without the dead letters that exist belongs to those that are gone.
        gone = (before.dead_digest - format_4.ids_digest(i.item_id for i in dead)) % (1 << 128)
        assert (record.dead_digest - digest(dead) - gone) % DIGEST_MODULUS == 0


@pytest.fixture
def queue() -> Queue:
    ids = IdSource(Random(1))
    (item_id,) = ids.mint(1, NOW_MS)
    queue = Queue(1, "q", [Item(item_id, b"x", "ready", NOW_MS)], last_id=item_id)
    queue.loads = [format_4.load("night", ids), format_4.load("day", ids)]
    queue.last_id = b"\xff" * 16
    return queue


def test_loads_under_way_are_dropped_and_named(folder: Path, queue: Queue) -> None:
    write_store(folder / "data", [queue])
    (folder / "data" / "loads" / "00ff").mkdir(parents=True)

    store, notes = upgraded(folder / "data")

    with store:
        assert entries(store, Family.LOADS, queue.prefix) == []
        assert entries(store, Family.FORGET, queue.prefix) == []
        counters = decode_counters(store.get(Family.COUNTERS, queue.prefix) or b"")
        assert (counters.forgets, counters.ready) == (0, 1)
    assert sorted(notes[:-1]) == [
        "load 'day' of queue 'q' was not committed, and is dropped: run it again",
        "load 'night' of queue 'q' was not committed, and is dropped: run it again",
    ]
    assert not (folder / "data" / "loads").exists()
    assert (folder / "data" / "format-4" / "loads" / "00ff").is_dir()


def test_parts_of_a_dropped_load_are_dropped_and_committed_loads_stay(
    folder: Path, queue: Queue
) -> None:
    write_store(folder / "data", [queue])
    loaded = LoadedRecord(LoadRef("done", 1), 0, NOW_MS, NOW_MS, NOW_MS + 9, rows=3, duplicates=0)
    committed = loads.loaded_key(loads.loaded_digest("done"))
    part = loads.load_key(loads.load_digest("night")) + bytes(3 + 16)
    put_entries(
        folder / "data",
        [
            ("loads", queue.prefix + committed, loads.encode_loaded(loaded)),
            ("loads", queue.prefix + part, b"a part"),
        ],
    )

    store, _ = upgraded(folder / "data")

    with store:
        assert entries(store, Family.LOADS, queue.prefix) == [
            (committed, loads.encode_loaded(loaded))
        ]


def test_half_committed_load_refuses_the_upgrade(folder: Path, queue: Queue) -> None:
    queue.loads[0] = queue.loads[0].at(is_committing=True)
    write_store(folder / "data", [queue])

    with pytest.raises(HalfCommitted) as refused:
        upgraded(folder / "data")

    assert str(refused.value) == (
        "load 'night' of queue 'q' is half committed; nothing was changed: start and stop the "
        "version of Queueber that wrote the store (format 4) once, which finishes it, then upgrade"
    )
    assert not (folder / "data" / "upgrade-unfinished").exists()


def test_batch_that_only_a_load_held_goes_with_it(folder: Path, queue: Queue) -> None:
    queue.loads = [load.at(batch=1) for load in queue.loads]
    queue.batches = {1: BatchRecord("b")}
    write_store(folder / "data", [queue])

    store, _ = upgraded(folder / "data")

    with store:
        assert batches(store, queue) == {}
        assert entries(store, Family.BATCH_NAMES, queue.prefix) == []
        counters = decode_counters(store.get(Family.COUNTERS, queue.prefix) or b"")
        assert (counters.batches, counters.last_batch, counters.forgets) == (0, 1, 0)


def test_batch_with_live_items_stays_without_the_load(folder: Path, queue: Queue) -> None:
    queue.loads = [load.at(batch=1) for load in queue.loads]
    queue.batches = {1: BatchRecord("b")}
    queue.items[0].batch = 1
    write_store(folder / "data", [queue])

    store, _ = upgraded(folder / "data")

    with store:
        record = batches(store, queue)[1]
        assert (record.added, record.live, record.loads) == (1, 1, 0)
        assert (record.changed_at_ms, record.forget_at_ms) == (LATER_MS, 0)
        names = entries(store, Family.BATCH_NAMES, queue.prefix)
        assert names == [(text_digest("b"), (1).to_bytes(4))]


def test_batch_that_has_ended_but_for_the_load_is_forgotten_later(
    folder: Path, queue: Queue
) -> None:
    queue.loads = [queue.loads[0].at(batch=1)]
    queue.batches = {1: BatchRecord("b", changed_at_ms=NOW_MS)}
    write_store(folder / "data", [queue])

    store, _ = upgraded(folder / "data")

    with store:
        record = batches(store, queue)[1]
        assert (record.added, record.done, record.dead, record.loads) == (3, 2, 1, 0)
        assert record.forget_at_ms == LATER_MS + BATCH_KEEP_MS
        due = due_part(record.forget_at_ms, (1).to_bytes(4) + bytes(12))
        assert entries(store, Family.FORGET, queue.prefix) == [(due, FORGET_BATCH)]
        counters = decode_counters(store.get(Family.COUNTERS, queue.prefix) or b"")
        assert (counters.forgets, counters.forget_due_ms <= record.forget_at_ms) == (1, True)


def test_batch_that_does_not_add_up_refuses_the_upgrade(folder: Path, queue: Queue) -> None:
    write_store(folder / "data", [queue])
    wrong = encode_batch(BatchRecord("b", added=1, added_digest=1))
    put_entries(folder / "data", [("batches", queue.prefix + (1).to_bytes(4), wrong)])

    with pytest.raises(DamagedStore, match="batch 'b' does not add up"):
        upgraded(folder / "data")


def test_item_of_no_known_batch_refuses_the_upgrade(folder: Path, queue: Queue) -> None:
    queue.items[0].batch = 9
    write_store(folder / "data", [queue])

    with pytest.raises(DamagedStore, match=r"items name the batches \[9\], which do not exist"):
        upgraded(folder / "data")
