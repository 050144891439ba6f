"""The options of RocksDB: the same for the store and for files that a load builds elsewhere."""

from pathlib import Path

import rocksdict

from queueber.db.families import Family
from queueber.limits import MIB

BLOCK_CACHE_BYTES = 64 * MIB
WRITE_BUFFERS_BYTES = 128 * MIB
"""For all families together. With the cache and Python the server stays below 500 MB."""

OPEN_FILES_MAX = 512

WAL_BYTES_MAX = 256 * MIB
"""A restart replays at most so much, in about two seconds."""


_TRACKED = Path(__file__).parent / "rocksdb"
"""A file of options that makes RocksDB record in its manifest which logs exist and how much of each
was synced, and refuse to open if one is missing. rocksdict has no setter for that."""


def database_options(*, strict: bool = True) -> rocksdict.Options:
    """`strict` refuses a log with a damaged record; otherwise the replay ends before it."""
    options, _ = rocksdict.Options.load_latest(str(_TRACKED))
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_write_buffer_size(WRITE_BUFFERS_BYTES)
    options.set_max_total_wal_size(WAL_BYTES_MAX)
    modes = rocksdict.DBRecoveryMode
    options.set_wal_recovery_mode(modes.absolute_consistency() if strict else modes.point_in_time())
    options.set_max_background_jobs(4)
    options.set_max_open_files(OPEN_FILES_MAX)
    options.set_keep_log_file_num(4)
    options.set_max_log_file_size(4 * MIB)
    options.set_stats_dump_period_sec(0)
    return options


def family_options(family: Family, cache: rocksdict.Cache | None = None) -> rocksdict.Options:
    table = rocksdict.BlockBasedOptions()
    if cache is not None:
        table.set_block_cache(cache)
    # Index and filter blocks are cached, so that memory does not grow with the queue. They are
    # partitioned: the cache would evict a filter of a whole file, and every get would reread it.
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, False)
    table.set_partition_filters(True)
    table.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
    table.set_pin_top_level_index_and_filter(True)
    table.set_format_version(5)

    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_size(family.profile.write_buffer_bytes)
    options.set_max_write_buffer_number(6)
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    # If compaction falls behind, reads are a little slower; a stalled write would stop the server.
    options.set_level_zero_slowdown_writes_trigger(200)
    options.set_level_zero_stop_writes_trigger(400)
    options.set_soft_pending_compaction_bytes_limit(1 << 40)
    options.set_hard_pending_compaction_bytes_limit(1 << 42)
    if family.profile.expects_deletes:
        options.add_compact_on_deletion_collector_factory(10_000, 5_000, 0.5)
    return options
