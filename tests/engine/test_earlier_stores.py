"""Stores that earlier versions wrote are opened as they are, and work goes on in them."""

import tarfile
from pathlib import Path
from random import Random

from queueber.db.recovery.opening import check_data_dir
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.ids import IdSource
from queueber.limits import MIB
from tests.support.operations import complete, poll, queue_stats, receipt, sweep

STORES = Path(__file__).parent / "stores"
WRITTEN_AT_MS = 1_700_000_000_000


def test_store_of_before_the_engine_had_one_write_door_opens_and_goes_on(tmp_path: Path) -> None:
    """Items of every state, leases, a batch, a producer, keys, results, a reader and a load."""
    with tarfile.open(STORES / "format-4.tar.gz") as stored:
        stored.extractall(tmp_path, filter="data")
    check_data_dir(tmp_path)

    with RocksStore(tmp_path) as store:
        engine = open_engine(store, IdSource(Random(1)))
        queue = engine.queues.get("q")

        assert check_store(store) == []
        stats = queue_stats(engine, queue, waiting_polls=0, now_ms=WRITTEN_AT_MS)
        assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (7, 3, 4, 1)
        assert (stats.results, stats.batches, stats.settings.isolation) == (1, 1, True)
        assert [load.record.ref.name for load in engine.loads.of(queue)] == ["load"]
        assert queue.results.readers == {"reader": 0}
        assert receipt(engine, queue, "b").added == 2

        now_ms = WRITTEN_AT_MS + 100_000
        while sweep(engine, now_ms) is not None:
            pass
        (polled,) = poll(engine, queue, [100], lease_ms=1000, answer_bytes_max=MIB, now_ms=now_ms)
        leases, results = [polled.lease_id] * len(polled.ids), [b"done"] * len(polled.ids)
        assert all(complete(engine, queue, polled.ids, leases, results, now_ms))
        assert len(polled.ids) == 10
        assert check_store(store) == []
