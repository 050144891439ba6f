"""How RocksDB is set up: the same for the files of the store and for those built elsewhere."""

from pathlib import Path

import rocksdict

from queueber.db.families import Family
from queueber.limits import MIB

BLOCK_CACHE_BYTES = 64 * MIB
WRITE_BUFFERS_BYTES = 128 * MIB
"""All families together; with the cache and the interpreter this keeps the server below 500 MB."""

OPEN_FILES_MAX = 512

WAL_BYTES_MAX = 256 * MIB
"""What a restart may have to replay: about two seconds."""


_TRACKED = Path(__file__).parent / "rocksdb"
"""A file of options that lets RocksDB note which logs there are, and how much of each was synced
before the next was begun, and refuse to open without. rocksdict has no setter for that."""


def database_options(*, strict: bool = True) -> rocksdict.Options:
    """`strict` refuses a log that is not whole; otherwise its replay ends before what is not."""
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
    # Index and filter blocks live in the cache, so that memory does not grow with the queue. They
    # come in parts: a filter for a whole file is so large that the cache drops it again, and every
    # get would read it anew.
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
    # Compaction that falls behind costs reads a little; a writer that waits for it stops us all.
    options.set_level_zero_slowdown_writes_trigger(200)
    options.set_level_zero_stop_writes_trigger(400)
    options.set_soft_pending_compaction_bytes_limit(1 << 40)
    options.set_hard_pending_compaction_bytes_limit(1 << 42)
    if family.profile.expects_deletes:
        options.add_compact_on_deletion_collector_factory(10_000, 5_000, 0.5)
    return options
