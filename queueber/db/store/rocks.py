"""RocksDB as a store; see `contract.py` for what that promises.

`write` appends a batch to the write-ahead log, unsynced, and `sync` makes all batches before it
durable. `sync` releases the GIL, `write` does not: so RocksDB must never make a write wait. Its
options avoid stalls, and a write that would stall raises `Unavailable` instead.
"""

import contextlib
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import Self
from weakref import WeakSet

import rocksdict

from queueber.db.families import Family
from queueber.db.recovery.opening import open_database
from queueber.db.recovery.wal import SYNCED_KEY, read_synced, synced_note, write_synced
from queueber.db.store.contract import Batch, Entries, Range, ScanIncomplete
from queueber.db.store.format import ensure_format
from queueber.db.store.properties import StoreProperties, read_properties
from queueber.db.store.snapshot import RocksSnapshot, unreadable
from queueber.errors import StorageCorrupt, StorageFailed, Unavailable, invariant


class RocksBatch:
    __slots__ = ("_handles", "raw", "synced")

    def __init__(self, handles: dict[Family, rocksdict.ColumnFamily], synced: int = 0) -> None:
        """`synced` is the sequence number to note in the log (see `wal.py`); 0: none."""
        self.raw = rocksdict.WriteBatch(raw_mode=True)
        self.synced = synced
        self._handles = handles
        if synced:
            # The note must be the first entry of its batch: `wal.py` looks for it there.
            self.raw.put(SYNCED_KEY, synced_note(synced), handles[Family.DEFAULT])

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self.raw.put(key, value, self._handles[family])

    def delete(self, family: Family, key: bytes) -> None:
        self.raw.delete(key, self._handles[family])

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None:
        handle, put = self._handles[family], self.raw.put
        for key, value in entries:
            put(key, value, handle)

    # These two are hot: `map` calls faster than a loop, and `deque` runs it and keeps nothing.

    def put_columns(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        invariant(len(keys) == len(values), "a value for each key", family=family.family_name)
        deque(map(self.raw.put, keys, values, repeat(self._handles[family])), maxlen=0)

    def delete_many(self, family: Family, keys: Iterable[bytes]) -> None:
        deque(map(self.raw.delete, keys, repeat(self._handles[family])), maxlen=0)

    def delete_range(self, family: Family, start: bytes, stop: bytes) -> None:
        # RocksDB would refuse the batch, and every later one.
        invariant(start <= stop, "a range starts before it stops", start=start, stop=stop)
        self.raw.delete_range(start, stop, self._handles[family])

    def __len__(self) -> int:
        return self.raw.len() - bool(self.synced)


class RocksStore:
    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open or create the store at `path`; with `read_only` it must exist, and is only read."""
        self.loads_path = path / "loads"
        self.checkpoints_path = path / "checkpoints"
        self._path = path
        self._is_read_only = read_only
        self.database, self.torn = open_database(path, read_only=read_only)
        self._synced = self._synced_in_log = 0
        """Sequence numbers: how far the log is synced, and the last such number noted in it."""
        self._has_failed_to_sync = False
        self._has_given_up_log = False
        self.refusal = ""
        """Why the last write was refused; empty once one succeeds."""
        """A write found the disk full: RocksDB writes no more to that log."""
        self.refused_writes = {"full_disk": 0, "stall": 0}
        """How many writes, by reason."""
        self._synced_noted = 0 if read_only else read_synced(path)
        self._families = {f: self.database.get_column_family(f.family_name) for f in Family}
        self._handles = {f: self.database.get_column_family_handle(f.family_name) for f in Family}
        self._write_options = rocksdict.WriteOptions()
        self._write_options.no_slowdown = True
        self._snapshots: WeakSet[RocksSnapshot] = WeakSet()
        try:
            ensure_format(self, read_only=read_only)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --- reading ----------------------------------------------------------------------------------

    def get(self, family: Family, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise unreadable(error) from error
        return value

    def get_many(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        try:
            # The stub wants a list of exactly its own union.
            values: list[bytes | None] = self._families[family].get(keys)  # type: ignore[arg-type,assignment]
        except Exception as error:
            raise unreadable(error) from error
        return values

    def scan(self, family: Family, start: bytes, stop: bytes, limit: int) -> Entries:
        options = _up_to(stop)
        entries = self._families[family].items(from_key=start, read_opt=options)
        # In raw mode keys and values are bytes; the stub does not know that.
        found: Entries = list(islice(entries, limit))  # type: ignore[arg-type]
        if len(found) < limit:
            self._check_end(family, found[-1][0] if found else start, options)
        return found

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        # The iterator points into the options: they must live as long as it does.
        options = _up_to(stop)
        last = start
        for entry in self._families[family].items(from_key=start, read_opt=options):
            last = entry[0]  # type: ignore[assignment]
            yield entry  # type: ignore[misc]
        self._check_end(family, last, options)

    def _check_end(self, family: Family, last: bytes, options: rocksdict.ReadOptions) -> None:
        """Raise if the scan ended after `last` because the next block cannot be read.

        rocksdict's `items` ends at a damaged block without an error. An iterator reports it; it is
        slower (three calls for each entry), so it only looks where `items` has ended.
        """
        iterator = self._families[family].iter(options)
        iterator.seek(last)
        if iterator.valid() and iterator.key() == last:
            iterator.next()
        try:
            iterator.status()
        except Exception as error:
            raise unreadable(error) from error

    def first_key(
        self, family: Family, start: bytes, stop: bytes, *, skips_max: int
    ) -> bytes | None:
        options = _up_to(stop)
        options.set_max_skippable_internal_keys(skips_max)
        iterator = self._families[family].iter(options)
        iterator.seek(start)
        if iterator.valid():
            key: bytes = iterator.key()
            return key
        try:
            iterator.status()
        except Exception as error:
            if "incomplete" in str(error):
                raise ScanIncomplete from None
            raise unreadable(error) from error
        return None

    def snapshot(self, ranges: Iterable[Range], points: Iterable[Family]) -> RocksSnapshot:
        taken = RocksSnapshot(self._families, ranges, points)
        self._snapshots.add(taken)
        return taken

    def properties(self) -> StoreProperties:
        """What RocksDB says of itself, for operators."""
        return read_properties(self._path, self.database, self._families.values())

    # --- writing ----------------------------------------------------------------------------------

    def batch(self) -> RocksBatch:
        synced = self._synced
        return RocksBatch(self._handles, synced if synced > self._synced_in_log else 0)

    def write(self, batch: Batch) -> None:
        """As the contract says. `StorageFailed` is final: what the disk holds is unknown. So is
        `StorageCorrupt`: a compaction found damage."""
        if not isinstance(batch, RocksBatch):
            raise TypeError("a batch of another store")
        try:
            self.database.write(batch.raw, self._write_options)
        except Exception as error:
            self._check_if_final(error)
            raise self._refused(error) from error
        self.refusal = ""
        if batch.synced:
            self._synced_in_log = batch.synced

    def sync(self) -> None:
        """Make everything written before this call durable. May run in another thread.

        `Unavailable` means not yet: after a write found the disk full, RocksDB abandons that log
        and, once there is space, makes its contents durable elsewhere; then a sync succeeds. A sync
        of the abandoned log would put RocksDB in a final error state, so a write is tried first.
        Any other error is final: what the disk holds is unknown.
        """
        if self._has_failed_to_sync:
            # The operating system may have dropped the pages that it could not write: a second
            # sync that succeeds proves nothing.
            raise StorageFailed("the log could not be written before; start the server again")
        if self._has_given_up_log or self.refusal:
            self._try_a_write()
        written = self.database.latest_sequence_number()
        try:
            self.database.flush_wal(True)
        except Exception as error:
            if "No space left" in str(error):
                self._has_given_up_log = True
                raise self._refused(error) from error
            self._has_failed_to_sync = True
            raise StorageFailed(
                f"the disk failed ({str(error).strip()}); look at it, then start the server again: "
                "all that was acknowledged is there"
            ) from error
        self._synced = written

    def _check_if_final(self, error: Exception) -> None:
        """Raise unless a write failed only because the disk is full or a write would stall."""
        text = str(error)
        if "Corruption" in text:
            raise unreadable(error) from error
        if "No space left" in text:
            self._has_given_up_log = True
            self.refused_writes["full_disk"] += 1
        elif _is_stall(text):
            self.refused_writes["stall"] += 1
        else:
            # RocksDB refuses all further writes; the log may hold none, some or all of the batch.
            self._has_failed_to_sync = True
            raise StorageFailed(
                f"the store cannot be written ({text.strip()}); the server stops, and whether this "
                "call took effect is known once it is started again"
            ) from error

    def _try_a_write(self) -> None:
        """Write the note alone. If that succeeds, all that was written before is durable."""
        probe = RocksBatch(self._handles, max(self._synced, 1))
        try:
            self.database.write(probe.raw, self._write_options)
        except Exception as error:
            self._check_if_final(error)
            raise self._refused(error) from error
        self._has_given_up_log = False
        self.refusal = ""

    def _refused(self, error: Exception) -> Unavailable:
        self.refusal = _why_refused(str(error))
        return Unavailable(self.refusal)

    @property
    def is_all_noted(self) -> bool:
        """Whether the note in the file `SYNCED` covers everything that was written.

        Not while the store refuses writes: the next sync finds out whether it still does.
        """
        return not self.refusal and self.database.latest_sequence_number() == self._synced_noted

    def note_synced(self) -> None:
        """Write into the file `SYNCED` how far the last sync went. May run in another thread."""
        if (synced := self._synced) > self._synced_noted:
            write_synced(self._path, synced)
            self._synced_noted = synced

    def take_in(self, family: Family, files: Sequence[tuple[Path, bytes]]) -> None:
        """As the contract says; `Unavailable` if the disk is too full to record the files."""
        found = [path for path, _ in files if path.is_file()]
        for path, first_key in files:
            if path not in found and self.get(family, first_key) is None:
                raise StorageCorrupt(
                    f"{path} is missing: a load was half committed, and cannot be finished without "
                    "it; restore the data directory from a backup"
                )
        if found:
            options = rocksdict.IngestExternalFileOptions()
            options.set_move_files(True)
            try:
                self._families[family].ingest_external_file([str(path) for path in found], options)
            except Exception as error:
                self._check_if_final(error)
                raise Unavailable(_why_refused(str(error))) from error

    def checkpoint(self, path: Path) -> None:
        """As the contract says. The files are links to those of the store, so they take no space
        as long as the store has them, too."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # `create_checkpoint` keeps the interpreter locked: no call is served meanwhile. What
            # takes long in it is to write out what is only in memory, so most of that is done here.
            for family in self._families.values():
                family.flush(True)
            rocksdict.Checkpoint(self.database).create_checkpoint(str(path))
        except Exception as error:
            for left in (path, path.with_name(f"{path.name}.tmp")):
                shutil.rmtree(left, ignore_errors=True)
            if "Corruption" in str(error):
                raise unreadable(error) from error
            raise Unavailable(_why_no_checkpoint(error)) from error

    def slices(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        bounds = {file["start_key"] for file in self.database.live_files()}
        return list(pairwise(sorted({start, stop, *(b for b in bounds if start < b < stop)})))

    def reclaim(self, family: Family, start: bytes, stop: bytes) -> None:
        options = rocksdict.CompactOptions()
        # Automatic compactions go on meanwhile: a write must never wait for this one.
        options.set_exclusive_manual_compaction(False)
        self._families[family].compact_range(start, stop, options)

    def close(self) -> None:
        # Every handle keeps the database open, and so the lock on the directory. Closing fails if
        # the disk is full; all that was acknowledged is in the log nevertheless.
        for snapshot in list(self._snapshots):
            snapshot.close()
        if not self._is_read_only:
            with contextlib.suppress(Exception):
                self.sync()
                self.note_synced()
        self._handles.clear()
        for handle in (*self._families.values(), self.database):
            with contextlib.suppress(Exception):
                handle.close()
        self._families = {}


def _up_to(stop: bytes) -> rocksdict.ReadOptions:
    options = rocksdict.ReadOptions()
    options.set_iterate_upper_bound(stop)
    options.set_total_order_seek(True)
    return options


def _is_stall(text: str) -> bool:
    return "incomplete" in text.lower() or "stall" in text.lower()


def _why_refused(text: str) -> str:
    if "No space left" in text:
        return "the disk of the data directory is full; make room, then send the call again"
    if _is_stall(text):
        return "the disk does not keep up with the writes; send the call again in a moment"
    return f"the store refused the write ({text.strip()}); look at the server's log and disk"


def _why_no_checkpoint(error: Exception) -> str:
    if "No space left" in str(error):
        return "the disk of the data directory is full; make room, then begin the backup again"
    return f"no checkpoint could be made ({str(error).strip()}); look at the server's disk"
