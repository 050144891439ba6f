"""A snapshot: chosen ranges of a store as they are at one moment, while writes go on.

Each range has an iterator of RocksDB, which shows the moment when it was made however often it
seeks; single entries are read through a snapshot of RocksDB. (rocksdict's snapshots have iterators,
too, but those show the present.) Both show the same moment: one thread makes them and does every
write. Until it is closed, a snapshot keeps files that compaction would delete, and the write
buffers of its families.
"""

from collections.abc import Iterable, Iterator, Mapping

import rocksdict

from queueber.db.families import Family
from queueber.db.store.contract import Entries, Range
from queueber.errors import StorageCorrupt


class RocksSnapshot:
    def __init__(
        self,
        families: Mapping[Family, rocksdict.Rdict],
        ranges: Iterable[Range],
        points: Iterable[Family],
    ) -> None:
        self._iterators = {
            (family, stop): families[family].iter(_options(stop)) for family, stop in ranges
        }
        self._points = {family: families[family].snapshot() for family in points}

    def get(self, family: Family, key: bytes) -> bytes | None:
        point = self._points[family]
        try:
            value: bytes = point[key]
        except Exception as error:
            if "key not found" in str(error):
                return None
            raise unreadable(error) from error
        return value

    def get_many(self, family: Family, keys: list[bytes]) -> list[bytes | None]:
        return [self.get(family, key) for key in keys]

    def scan(self, family: Family, start: bytes, stop: bytes, limit: int) -> Entries:
        iterator = self._iterators[family, stop]
        iterator.seek(start)
        found: Entries = []
        while len(found) < limit and iterator.valid():
            found.append((iterator.key(), iterator.value()))
            iterator.next()
        _check_status(iterator)
        return found

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        iterator = self._iterators[family, stop]
        iterator.seek(start)
        while iterator.valid():
            yield iterator.key(), iterator.value()
            iterator.next()
        _check_status(iterator)

    def close(self) -> None:
        self._iterators.clear()
        self._points.clear()


def unreadable(error: Exception) -> StorageCorrupt:
    """The error for data that RocksDB cannot read."""
    reason = str(error).strip()
    return StorageCorrupt(
        f"the store cannot be read ({reason}); look at the disk, and run 'queueber verify' on the "
        "stopped store: it says what is damaged, and 'queueber repair' saves what can be read"
    )


def _check_status(iterator: rocksdict.RdictIter) -> None:
    """Raise if an iterator ended before the end of its range."""
    try:
        iterator.status()
    except Exception as error:
        raise unreadable(error) from error


def _options(stop: bytes) -> rocksdict.ReadOptions:
    options = rocksdict.ReadOptions()
    options.set_iterate_upper_bound(stop)
    options.set_total_order_seek(True)
    # A thread of RocksDB deletes files that only this iterator kept, so that closing is quick.
    options.set_background_purge_on_iterator_cleanup(True)
    return options
