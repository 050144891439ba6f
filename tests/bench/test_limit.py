"""The limit: what is put straight into RocksDB is all that the engine writes."""

from pathlib import Path

from bench.measure import Shape
from bench.peers.limit import record, replay
from queueber.db.families import Family
from queueber.db.store.rocks import RocksStore


def test_replay_writes_every_item_and_deletes_every_one(tmp_path: Path) -> None:
    added, taken = record(tmp_path, Shape(100, 100))
    few, of_few = added[:3], taken[:6]

    with RocksStore(tmp_path / "data") as store:
        assert replay(store, few, callers=2, writes_a_call=1) > 0
        items = list(store.walk(Family.ITEMS, b"", b"\xff" * 20))
        ready = list(store.walk(Family.VISIBILITY_INDEX, b"", b"\xff" * 29))
        assert replay(store, of_few, callers=2, writes_a_call=2) > 0
        left = [
            list(store.walk(family, b"", b"\xff" * 40))
            for family in (Family.ITEMS, Family.VISIBILITY_INDEX, Family.LEASES, Family.HOLDERS)
        ]

    assert (len(items), len(ready)) == (300, 300)
    assert left == [[], [], [], []]
