"""A snapshot: chosen ranges of a store as they are at one moment, while writes go on.

A range is held by an iterator of RocksDB, which shows the moment of its making however often it is
moved; single entries are read through a snapshot of RocksDB. (rocksdict's snapshots have iterators
too, but those show the present.) Nothing else writes between the two: all of this, and every write,
happens on one thread. What is held costs disk and memory until it is closed: files that compaction
would delete, and the write buffers of the ranges' families.
"""

from collections.abc import Iterable, Iterator, Mapping

import rocksdict

from queueber.db.families import Family
from queueber.db.store.contract import Range
from queueber.errors import StorageCorrupt


class RocksSnapshot:
    """Made by `Store.snapshot`, and to be closed before the store is."""

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

    def scan(
        self, family: Family, start: bytes, stop: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """As `Store.scan`, where `stop` is the end of one of the snapshot's ranges."""
        iterator = self._iterators[family, stop]
        iterator.seek(start)
        found: list[tuple[bytes, bytes]] = []
        while len(found) < limit and iterator.valid():
            found.append((iterator.key(), iterator.value()))
            iterator.next()
        check_status(iterator)
        return found

    def walk(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """As `Store.walk`; one walk of a range at a time."""
        iterator = self._iterators[family, stop]
        iterator.seek(start)
        while iterator.valid():
            yield iterator.key(), iterator.value()
            iterator.next()
        check_status(iterator)

    def close(self) -> None:
        self._iterators.clear()
        self._points.clear()


def unreadable(error: Exception) -> StorageCorrupt:
    """What to raise when RocksDB cannot read what it has."""
    reason = str(error).strip()
    return StorageCorrupt(
        f"the store cannot be read ({reason}); look at the disk, and run 'queueber verify' on the "
        "stopped store: it says what is damaged, and 'queueber repair' saves what can be read"
    )


def check_status(iterator: rocksdict.RdictIter) -> None:
    """Raise when an iterator ended for another reason than the end of its range."""
    try:
        iterator.status()
    except Exception as error:
        raise unreadable(error) from error


def _options(stop: bytes) -> rocksdict.ReadOptions:
    options = rocksdict.ReadOptions()
    options.set_iterate_upper_bound(stop)
    options.set_total_order_seek(True)
    # Files that only this iterator held are deleted by a thread of RocksDB when it goes.
    options.set_background_purge_on_iterator_cleanup(True)
    return options
