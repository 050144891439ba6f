"""The store: RocksDB behind bounded reads and atomic batches.

Writes are not synced one by one: `write` hands a batch to the write ahead log, `sync` makes all
that was written before it durable. `sync` releases the interpreter lock, `write` does not, so
RocksDB must never make a writer wait: stalls are tuned away, and one that comes all the same is a
refusal (`Unavailable`) instead of a sleep.
"""

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import Self
from weakref import WeakSet

import rocksdict

from queueber.db.families import Family
from queueber.db.recovery.opening import open_database
from queueber.db.recovery.synced import read_synced, write_synced
from queueber.db.recovery.wal import SYNCED_KEY, synced_note
from queueber.db.store.contract import Batch, Range, ScanIncomplete
from queueber.db.store.format import ensure_format
from queueber.db.store.snapshot import RocksSnapshot, check_status, unreadable
from queueber.errors import StorageCorrupt, StorageFailed, Unavailable, invariant


class RocksBatch:
    """Writes that happen together or not at all."""

    __slots__ = ("_handles", "raw", "synced")

    def __init__(self, handles: dict[Family, rocksdict.ColumnFamily], synced: int = 0) -> None:
        """`synced` is to be noted in the log; 0: nothing is."""
        self.raw = rocksdict.WriteBatch(raw_mode=True)
        self.synced = synced
        self._handles = handles
        if synced:
            # The first entry of the batch: there it is looked for.
            self.raw.put(SYNCED_KEY, synced_note(synced), handles[Family.DEFAULT])

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self.raw.put(key, value, self._handles[family])

    def delete(self, family: Family, key: bytes) -> None:
        self.raw.delete(key, self._handles[family])

    def put_many(self, family: Family, entries: Iterable[tuple[bytes, bytes]]) -> None:
        handle, put = self._handles[family], self.raw.put
        for key, value in entries:
            put(key, value, handle)

    # These two are called for every item. `map` calls with less ado than a loop, and `deque` is
    # what runs it without keeping anything.

    def put_columns(self, family: Family, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """As `put_many`; there is a value for each key."""
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
    """An open data directory."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open or create the store at `path`; `read_only` opens one that exists, as it is."""
        self.loads_path = path / "loads"
        """Where the files of loads wait: on the same disk, to be taken in as they are."""
        self._path = path
        self._is_read_only = read_only
        self.database, self.torn = open_database(path, read_only=read_only)
        self._synced = self._synced_in_log = 0
        """Sequence numbers up to which everything is synced, and was when the log was told."""
        self._has_failed_to_sync = False
        self._has_given_up_log = False
        """A write found no room: RocksDB writes nothing more to that log."""
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

    def get_neighbours(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        """As `get_many`, in half the time if the keys are in order with few others between them."""
        if not keys:
            return []
        options = _up_to(keys[-1] + b"\0")
        # Past so many deleted ones they are no neighbours; what was not reached is got one by one.
        options.set_max_skippable_internal_keys(len(keys))
        entries = self._families[family].items(from_key=keys[0], read_opt=options)
        listed: list[tuple[bytes, bytes]] = list(islice(entries, len(keys)))  # type: ignore[arg-type]
        if [key for key, _ in listed] == keys:
            return [value for _, value in listed]
        found: dict[bytes, bytes | None] = dict(listed)
        missing = [key for key in keys if key not in found]
        if missing:
            found.update(zip(missing, self.get_many(family, missing), strict=True))
        return [found[key] for key in keys]

    def scan(
        self, family: Family, start: bytes, stop: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """Up to `limit` entries with `start <= key < stop`, in order."""
        options = _up_to(stop)
        entries = self._families[family].items(from_key=start, read_opt=options)
        # In raw mode all are bytes, which the stub does not know.
        found: list[tuple[bytes, bytes]] = list(islice(entries, limit))  # type: ignore[arg-type]
        if len(found) < limit:
            self._check_end(family, found[-1][0] if found else start, options)
        return found

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Every entry with `start <= key < stop`, read as it is asked for."""
        # The iterator looks at the options' bytes as long as it is read: they must live on here.
        options = _up_to(stop)
        last = start
        for entry in self._families[family].items(from_key=start, read_opt=options):
            last = entry[0]  # type: ignore[assignment]
            yield entry  # type: ignore[misc]
        self._check_end(family, last, options)

    def _check_end(self, family: Family, last: bytes, options: rocksdict.ReadOptions) -> None:
        """Raise if there is nothing after `last` because it cannot be read.

        rocksdict's `items` ends at a damaged block as it does at the end. An iterator tells them
        apart, and is asked only where `items` came to an end: it takes three calls for an entry.
        """
        iterator = self._families[family].iter(options)
        iterator.seek(last)
        if iterator.valid() and iterator.key() == last:
            iterator.next()
        check_status(iterator)

    def first_key(
        self, family: Family, start: bytes, stop: bytes, *, skips_max: int
    ) -> bytes | None:
        """The first key with `start <= key < stop`.

        Raises `ScanIncomplete` rather than pass over more than `skips_max` deleted entries.
        """
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
        """The store as it is now: ranges to scan, each by its end, and families to get from."""
        taken = RocksSnapshot(self._families, ranges, points)
        self._snapshots.add(taken)
        return taken

    # --- writing ----------------------------------------------------------------------------------

    def batch(self) -> RocksBatch:
        synced = self._synced
        return RocksBatch(self._handles, synced if synced > self._synced_in_log else 0)

    def write(self, batch: Batch) -> None:
        """Write all of the batch, or raise `Unavailable` and write nothing.

        `StorageFailed` is final: nobody knows what the disk holds. So is `StorageCorrupt`: a
        compaction met damage.
        """
        if not isinstance(batch, RocksBatch):
            raise TypeError("a batch of another store")
        try:
            self.database.write(batch.raw, self._write_options)
        except Exception as error:
            self._check_if_final(error)
            raise Unavailable(_why_refused(str(error))) from error
        if batch.synced:
            self._synced_in_log = batch.synced

    def sync(self) -> None:
        """Make everything written before this call durable. May run in a thread of its own.

        `Unavailable` means not yet: after a write found the disk full, RocksDB gives up that log
        and, once there is room, makes what it held durable elsewhere; then a sync succeeds. To sync
        the log that it gave up would make it give up for good, so a write is tried first. Any other
        error is final: nobody knows what the disk holds.
        """
        if self._has_failed_to_sync:
            # The operating system may have forgotten what it could not write: a second try that
            # succeeds proves nothing.
            raise StorageFailed("the log could not be written before; start the server again")
        if self._has_given_up_log:
            self._try_a_write()
        written = self.database.latest_sequence_number()
        try:
            self.database.flush_wal(True)
        except Exception as error:
            if "No space left" in str(error):
                self._has_given_up_log = True
                raise Unavailable(_why_refused(str(error))) from error
            self._has_failed_to_sync = True
            raise StorageFailed(
                f"the disk failed ({str(error).strip()}); look at it, then start the server again: "
                "all that was acknowledged is there"
            ) from error
        self._synced = written

    def _check_if_final(self, error: Exception) -> None:
        """Raise if something was not written for another reason than want of room or time."""
        text = str(error)
        if "Corruption" in text:
            raise unreadable(error) from error
        if "No space left" in text:
            self._has_given_up_log = True
        elif not _is_stall(text):
            # RocksDB will write no more, and the log may hold a part of the batch, or all of it.
            self._has_failed_to_sync = True
            raise StorageFailed(
                f"the store cannot be written ({text.strip()}); the server stops, and whether this "
                "call took effect is known once it is started again"
            ) from error

    def _try_a_write(self) -> None:
        """Whether RocksDB writes again: then all that it took before is durable."""
        probe = RocksBatch(self._handles, max(self._synced, 1))
        try:
            self.database.write(probe.raw, self._write_options)
        except Exception as error:
            self._check_if_final(error)
            raise Unavailable(_why_refused(str(error))) from error
        self._has_given_up_log = False

    @property
    def is_all_noted(self) -> bool:
        """Whether nothing was written since `note_synced` was last called after a sync."""
        return self.database.latest_sequence_number() == self._synced_noted

    def note_synced(self) -> None:
        """Note in a file how far the last sync went. May run in a thread of its own."""
        if (synced := self._synced) > self._synced_noted:
            write_synced(self._path, synced)
            self._synced_noted = synced

    def take_in(self, family: Family, files: Sequence[tuple[Path, bytes]]) -> None:
        """Take in sorted files as they are, each given with its first key. Durable at once.

        The files go. One that has gone was taken in before: a crash came between. `Unavailable`
        when there is no room to take note of them.
        """
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

    def slices(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        """The range in parts, none of which spans more than a few files."""
        bounds = {file["start_key"] for file in self.database.live_files()}
        return list(pairwise(sorted({start, stop, *(b for b in bounds if start < b < stop)})))

    def reclaim(self, family: Family, start: bytes, stop: bytes) -> None:
        """Give the room of deleted entries back to the disk. May run in a thread of its own."""
        options = rocksdict.CompactOptions()
        # Others may be compacted meanwhile: a writer must never wait for this.
        options.set_exclusive_manual_compaction(False)
        self._families[family].compact_range(start, stop, options)

    def close(self) -> None:
        # Every handle keeps the database open, and with it the lock on the directory. A disk that
        # is full makes closing fail; what was acknowledged is in the log all the same.
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
