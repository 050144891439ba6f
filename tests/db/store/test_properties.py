"""What RocksDB says of itself."""

from pathlib import Path

from queueber.db.families import Family
from queueber.db.store.options import BLOCK_CACHE_BYTES
from queueber.db.store.rocks import RocksStore


def test_writes_are_in_the_log_and_in_memory_until_they_are_flushed(tmp_path: Path) -> None:
    with RocksStore(tmp_path / "data") as store:
        batch = store.batch()
        batch.put(Family.ITEMS, b"k", bytes(100_000))
        store.write(batch)
        store.sync()

        written = store.properties()
        store.database.flush()
        for family in Family:
            store.database.get_column_family(family.family_name).flush()
        flushed = store.properties()

    assert written.log_bytes > 100_000
    assert written.memtables_bytes > 100_000
    assert written.files_bytes == 0
    assert flushed.files_bytes > 0
    assert flushed.level0_files >= 1
    assert flushed.memtables_bytes < written.memtables_bytes
    assert written.cache_bytes_max == BLOCK_CACHE_BYTES
    assert 0 < written.disk_free_bytes <= written.disk_bytes
    assert (written.is_write_stopped, written.background_errors) == (False, 0)
