"""Stores that earlier versions wrote are upgraded, and work goes on in them."""

import tarfile
from pathlib import Path
from random import Random

import pytest

from queueber.db.recovery.opening import check_data_dir
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade.stores import Work
from queueber.db.upgrade.upgrading import Upgraded, upgrade
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.ids import IdSource
from queueber.limits import DAY_MS, MIB
from tests.support.format_4 import NOW_MS, random_queue, write_store
from tests.support.operations import complete, poll, queue_stats, receipt, sweep

STORES = Path(__file__).parent / "stores"
WRITTEN_AT_MS = 1_700_000_000_000


def checked(store: Store) -> list[str]:
    return [str(violation) for violation in check_store(store)]


def test_store_of_format_4_is_upgraded_and_goes_on(tmp_path: Path) -> None:
    """Items of every state, leases, a batch, a producer, keys, results, a reader and a load."""
    with tarfile.open(STORES / "format-4.tar.gz") as stored:
        # An argument of `extractall` since 3.11.4; Debian has 3.11.2.
        stored.extraction_filter = getattr(tarfile, "data_filter", None)
        stored.extractall(tmp_path)

    assert upgrade(tmp_path, Work(WRITTEN_AT_MS), checked) == Upgraded(
        [
            "load 'load' of queue 'q' was not committed, and is dropped: run it again",
            "the store has format 5 now: queues: 2, items: 15",
        ],
        tmp_path / "format-4",
    )

    check_data_dir(tmp_path)
    with RocksStore(tmp_path) as store:
        engine = open_engine(store, IdSource(Random(1)))
        queue = engine.queues.get("q")

        assert check_store(store) == []
        stats = queue_stats(engine, queue, waiting_polls=0, now_ms=WRITTEN_AT_MS)
        assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (7, 3, 4, 1)
        assert (stats.results, stats.batches, stats.settings.isolation) == (1, 1, True)
        assert list(engine.loads.of(queue)) == []
        assert queue.results.readers == {"reader": 0}
        receipt_of_b = receipt(engine, queue, "b")
        assert (receipt_of_b.added, receipt_of_b.dead, receipt_of_b.live) == (2, 1, 1)

        now_ms = WRITTEN_AT_MS + 100_000
        while sweep(engine, now_ms) is not None:
            pass
        (polled,) = poll(engine, queue, [100], lease_ms=1000, answer_bytes_max=MIB, now_ms=now_ms)
        leases, results = [polled.lease_id] * len(polled.ids), [b"done"] * len(polled.ids)
        assert all(complete(engine, queue, polled.ids, leases, results, now_ms))
        assert len(polled.ids) == 10
        assert check_store(store) == []


@pytest.mark.parametrize("seed", range(10))
def test_upgraded_store_breaks_no_rule_and_its_items_can_be_completed(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    written = [random_queue(random, number) for number in (1, 2)]
    write_store(tmp_path / "data", written)

    assert upgrade(tmp_path / "data", Work(NOW_MS), checked) is not None

    with RocksStore(tmp_path / "data") as store:
        engine = open_engine(store, IdSource(Random(1)))
        for before in written:
            queue = engine.queues.get(before.name)
            done: dict[bytes, bytes] = {}
            now_ms = NOW_MS
            while queue.counters.items > queue.counters.dead:
                now_ms += DAY_MS
                while sweep(engine, now_ms) is not None:
                    pass
                (polled,) = poll(
                    engine, queue, [1000], lease_ms=1000, answer_bytes_max=64 * MIB, now_ms=now_ms
                )
                leases, results = [polled.lease_id] * len(polled.ids), [b""] * len(polled.ids)
                done.update(zip(polled.ids, polled.contents, strict=True))
                assert all(complete(engine, queue, polled.ids, leases, results, now_ms))
            expected = {item.item_id: item.contents for item in before.items}
            assert done.items() <= expected.items()
            assert len(done) + queue.counters.dead == len(expected)
        assert check_store(store) == []
