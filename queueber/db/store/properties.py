"""What RocksDB says of itself: its memory, its files, and how far its compactions are behind."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import rocksdict


@dataclass(frozen=True, slots=True)
class StoreProperties:
    """Numbers at one moment, of all families together unless they say otherwise."""

    files_bytes: int
    """Sorted files that are in use."""
    log_bytes: int
    """The write-ahead log."""
    disk_bytes: int
    disk_free_bytes: int
    """What the server may still use of the disk of its data directory."""
    memtables_bytes: int
    cache_bytes: int
    cache_bytes_max: int
    compaction_pending_bytes: int
    compactions_running: int
    flushes_running: int
    level0_files: int
    """Of the family that has most."""
    is_write_stopped: bool
    background_errors: int


def read_properties(
    path: Path, database: rocksdict.Rdict, families: Collection[rocksdict.Rdict]
) -> StoreProperties:
    """Takes some microseconds a property; the directory is listed for the log."""

    def of_database(name: str) -> int:
        return database.property_int_value(f"rocksdb.{name}") or 0

    def of_families(name: str) -> list[int]:
        return [each.property_int_value(f"rocksdb.{name}") or 0 for each in families]

    disk = os.statvfs(path)
    return StoreProperties(
        files_bytes=sum(of_families("live-sst-files-size")),
        log_bytes=_log_bytes(path),
        disk_bytes=disk.f_blocks * disk.f_frsize,
        disk_free_bytes=disk.f_bavail * disk.f_frsize,
        memtables_bytes=sum(of_families("size-all-mem-tables")),
        cache_bytes=of_database("block-cache-usage"),
        cache_bytes_max=of_database("block-cache-capacity"),
        compaction_pending_bytes=sum(of_families("estimate-pending-compaction-bytes")),
        compactions_running=of_database("num-running-compactions"),
        flushes_running=of_database("num-running-flushes"),
        level0_files=max(of_families("num-files-at-level0")),
        is_write_stopped=bool(of_database("is-write-stopped")),
        background_errors=of_database("background-errors"),
    )


def _log_bytes(path: Path) -> int:
    total = 0
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.endswith(".log"):
                try:
                    total += entry.stat().st_size
                except FileNotFoundError:  # RocksDB has just deleted it
                    continue
    return total
