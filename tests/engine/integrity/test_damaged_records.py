"""Records that cannot be read: told as damage of the store, never as a fault of ours."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.errors import StorageCorrupt
from queueber.ids import IdSource
from queueber.limits import MIB
from queueber.model import NewItems, QueueSettings
from tests.support.folders import quick_folder, remove_folder
from tests.support.operations import add, create_queue, poll

NOW_MS = 1_700_000_000_000


@pytest.fixture
def store() -> Iterator[Store]:
    folder: Path = quick_folder()
    with RocksStore(folder / "data") as opened:
        engine = open_engine(opened, IdSource(Random(1)))
        create_queue(engine, "q", QueueSettings(), NOW_MS)
        queue = engine.queues.get("q")
        add(engine, queue, NewItems([b"a", b"b"]), NOW_MS)
        poll(engine, queue, [1], lease_ms=1000, answer_bytes_max=MIB, now_ms=NOW_MS)
        yield opened
    remove_folder(folder)


def damage(store: Store, family: Family) -> None:
    [(key, _), *_] = store.scan(family, b"", b"\xff" * 32, 1)
    batch = store.batch()
    batch.put(family, key, b"xx")
    store.write(batch)


@pytest.mark.parametrize("family", [Family.QUEUES, Family.COUNTERS])
def test_open_of_a_queue_that_cannot_be_read_is_refused(store: Store, family: Family) -> None:
    damage(store, family)

    with pytest.raises(StorageCorrupt, match="queue number 1 cannot be read"):
        open_engine(store, IdSource(Random(1)))


@pytest.mark.parametrize("family", [Family.QUEUES, Family.COUNTERS, Family.ITEMS, Family.LEASES])
def test_check_store_reports_a_value_that_cannot_be_read(store: Store, family: Family) -> None:
    damage(store, family)

    assert check_store(store) != []
