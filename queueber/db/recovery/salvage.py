"""Read what can be read of a damaged store, and report what cannot.

A family is read in the order of its keys. Where RocksDB cannot read on, seeks find the next key
from which it can: the range between the two is a gap. Entries of sound files in that range are lost
with it: without the damaged file it is unknown whether they are still valid.
"""

import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

import rocksdict

from queueber.db.families import Family
from queueber.db.recovery.opening import log_break, open_raw
from queueber.db.recovery.wal import read_synced
from queueber.db.store.contract import LOCAL_ENTRIES, Store
from queueber.db.store.rocks import RocksStore
from queueber.errors import StorageCorrupt

_KEY_BITS = 8 * 64
"""The longest key that is searched for; only keys of a log's readers may be longer."""
_BATCH_ENTRIES = 500


class Gap(NamedTuple):
    """A range of a family that cannot be read, from after one key to before another."""

    family: Family
    after: bytes
    before: bytes | None
    """None: up to the end of the family."""
    reason: str

    def __str__(self) -> str:
        before = "the end" if self.before is None else self.before.hex()
        after = self.after.hex() or "the beginning"
        return f"{self.family.family_name} between {after} and {before}: {self.reason}"


class Salvage:
    """A damaged store to read from. It is not changed."""

    def __init__(self, path: Path, work: Path) -> None:
        """`work` is a folder to create: for a copy of the store, if RocksDB has to rebuild the list
        of its files before it can open them."""
        self.remarks: list[str] = []
        """Losses that are known before any key is read."""
        try:
            self._db = open_raw(path)
        except Exception as error:  # noqa: BLE001  RocksDB has one type for all that can be wrong
            reason = str(error).strip()
            self.remarks.append(
                f"the store cannot be opened as it is ({reason}): the list of its files was "
                "rebuilt, which may bring back what was deleted last, and drops what follows "
                "damage in a log"
            )
            self._db = _rebuilt_copy(path, work)
            self.remarks += [
                f"{file.name} cannot be read at all, and everything in it is lost"
                for file in sorted((work / "lost").glob("*.sst"))
            ]
        else:
            broken = log_break(path, self._db.latest_sequence_number())
            if broken is not None:
                synced = f"; at least up to change {broken.synced}" if broken.synced else ""
                self.remarks.append(
                    f"the log breaks off at {path / broken.file}, byte {broken.position}: what it "
                    f"held after change {self._db.latest_sequence_number()} is lost{synced}"
                )
            self._note_missing_end(path)

    def _note_missing_end(self, path: Path) -> None:
        try:
            synced = read_synced(path)
        except StorageCorrupt as error:
            self.remarks.append(str(error))
            return
        if synced > (found := self._db.latest_sequence_number()):
            self.remarks.append(
                f"the store ends with change {found}, but {synced} were synced: the others are lost"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._db.close()

    def copy_to(self, store: Store, on_gap: Callable[[Gap], None]) -> int:
        """Copy every readable entry into another store; returns how many there were."""
        copied = 0
        for family in Family:
            entries = walk_readable(self._db, family, on_gap)
            while chunk := list(islice(entries, _BATCH_ENTRIES)):
                batch = store.batch()
                batch.put_many(family, [e for e in chunk if (family, e[0]) not in LOCAL_ENTRIES])
                store.write(batch)
                copied += len(chunk)
        return copied


def find_gaps(store: RocksStore) -> list[Gap]:
    """Read every block of every file, and return the ranges that cannot be read."""
    gaps: list[Gap] = []
    for family in Family:
        for _ in walk_readable(store.database, family, gaps.append):
            pass
    return gaps


def walk_readable(
    database: rocksdict.Rdict, family: Family, on_gap: Callable[[Gap], None]
) -> Iterator[tuple[bytes, bytes]]:
    """Every readable entry of the family, in order, and a call of `on_gap` for each gap."""
    entries = database.get_column_family(family.family_name)
    options = rocksdict.ReadOptions()
    options.set_total_order_seek(True)
    start: bytes | None = b""
    while start is not None:
        iterator = entries.iter(options)
        iterator.seek(start)
        last = start
        while iterator.valid():
            last = iterator.key()
            yield last, iterator.value()
            iterator.next()
        reason = _why_ended(iterator)
        if reason is None:
            return
        start = _next_readable(entries, options, last)
        on_gap(Gap(family, last, start, reason))


def _next_readable(
    entries: rocksdict.Rdict, options: rocksdict.ReadOptions, last: bytes
) -> bytes | None:
    """The first key after `last` from which the family can be read; None if there is none."""

    def can_be_read(number: int) -> bool:
        iterator = entries.iter(options)
        iterator.seek(_as_key(number))
        return _why_ended(iterator) is None

    low = int.from_bytes(last.ljust(_KEY_BITS // 8, b"\0"))
    # Steps double: at most as much as the unreadable range itself is skipped.
    step = 1
    while not can_be_read(min(low + step, (1 << _KEY_BITS) - 1)):
        if low + step >= 1 << _KEY_BITS:
            return None
        step *= 2
    bad, good = low + step // 2, low + step
    while good - bad > 1:
        middle = (bad + good) // 2
        if can_be_read(middle):
            good = middle
        else:
            bad = middle
    return _as_key(good)


def _as_key(number: int) -> bytes:
    return min(number, (1 << _KEY_BITS) - 1).to_bytes(_KEY_BITS // 8).rstrip(b"\0")


def _why_ended(iterator: rocksdict.RdictIter) -> str | None:
    try:
        iterator.status()
    except Exception as error:  # noqa: BLE001  RocksDB has one type for all that can be wrong
        return str(error).strip()
    return None


def _rebuilt_copy(path: Path, work: Path) -> rocksdict.Rdict:
    """Open a copy for which RocksDB has made a new list of its files."""
    work.mkdir(parents=True)
    for file in path.iterdir():
        if file.is_file() and file.name != "LOCK":
            shutil.copy2(file, work / file.name)
    while True:
        rocksdict.Rdict.repair(str(work), rocksdict.Options(raw_mode=True))
        try:
            # Families without any file left are created, empty.
            return open_raw(work, read_only=False)
        except Exception as error:
            damaged = next((file for file in work.glob("*.sst") if str(file) in str(error)), None)
            # Another error (too many open files, say) is no reason to drop a file.
            if damaged is None or not str(error).startswith("Corruption"):
                raise
            # RocksDB lists files that it cannot open afterwards.
            (work / "lost").mkdir(exist_ok=True)
            damaged.rename(work / "lost" / damaged.name)
