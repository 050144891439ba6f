"""The store of the original Queueber, read to bring its items over. It is not changed.

Every key begins with the name of its family. Times are whole seconds.

    available/<id>                          an item that waits
    in_progress/<id>                        an item that somebody had polled
    visibility_index/<time>/<id>            when an item that waits becomes visible
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import rocksdict

from queueber.errors import InvalidArgument, StorageCorrupt
from queueber.schema import original

_AVAILABLE, _IN_PROGRESS, _INDEX = "available", "in_progress", "visibility_index"
_CONFIG = "rocksdict-config.json"
"""rocksdict writes this file whenever it opens a store; the original has no use for it."""
_TIME_BYTES = 8
_ID_BYTES = 16


class OriginalItem(NamedTuple):
    id: bytes
    contents: bytes
    visible_at_secs: int
    """0: somebody had polled it."""


class OriginalCounts(NamedTuple):
    waiting: int
    in_progress: int


class OriginalStore:
    def __init__(self, path: Path) -> None:
        """Raises `InvalidArgument` if there is no such store at `path`."""
        names = _families(path)
        if _AVAILABLE not in names:
            raise InvalidArgument(f"{path} has no store of the original Queueber")
        options = {name: rocksdict.Options(raw_mode=True) for name in names}
        config = path / _CONFIG
        is_new = not config.exists()
        try:
            self._database = rocksdict.Rdict(
                str(path),
                rocksdict.Options(raw_mode=True),
                options,
                rocksdict.AccessType.read_only(),
            )
        except Exception as error:
            raise _unreadable(path, error) from error
        finally:
            if is_new:
                config.unlink(missing_ok=True)
        self._path = path
        self._families = {name: self._database.get_column_family(name) for name in names}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._families.clear()
        self._database.close()

    def count(self) -> OriginalCounts:
        """Reads all keys."""
        counts = (sum(1 for _ in self._walk(name)) for name in (_AVAILABLE, _IN_PROGRESS))
        return OriginalCounts(*counts)

    def items(self) -> Iterator[OriginalItem]:
        """Every item once: first those that were in progress, then by the time they are visible."""
        for key, value in self._walk(_IN_PROGRESS):
            yield self._read(key, value, 0)
        head = len(_INDEX) + 1
        for key, item_key in self._walk(_INDEX):
            found = self._get(_AVAILABLE, item_key)
            # An entry without an item is what the original itself would tidy up.
            if found is not None:
                yield self._read(item_key, found, _time(key[head:]))
        for key, value in self._walk(_AVAILABLE):
            item = self._read(key, value, 0)
            if self._get(_INDEX, self._index_key(key, value)) is None:
                yield item  # without an entry of the index the original would never find it

    def _read(self, key: bytes, value: bytes, visible_at_secs: int) -> OriginalItem:
        item_id = key.partition(b"/")[2]
        try:
            with original.StoredItem.from_bytes(value) as stored:
                item = OriginalItem(item_id, bytes(stored.contents), visible_at_secs)
        except Exception as error:
            raise _unreadable(self._path, error, item_id) from error
        if len(item_id) != _ID_BYTES:
            raise _unreadable(self._path, ValueError("a bad id"), item_id)
        return item

    def _index_key(self, key: bytes, value: bytes) -> bytes:
        with original.StoredItem.from_bytes(value) as stored:
            return bytes(stored.visibilityTsIndexKey)

    def _get(self, name: str, key: bytes) -> bytes | None:
        value: bytes | None = self._families[name].get(key) if name in self._families else None
        return value

    def _walk(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        if name not in self._families:
            return
        options = rocksdict.ReadOptions()
        options.set_total_order_seek(True)
        prefix = f"{name}/".encode()
        iterator = self._families[name].iter(options)
        iterator.seek(prefix)
        while iterator.valid() and iterator.key().startswith(prefix):
            yield iterator.key(), iterator.value()
            iterator.next()
        try:
            iterator.status()
        except Exception as error:
            raise _unreadable(self._path, error) from error


def _families(path: Path) -> list[str]:
    if not (path / "CURRENT").is_file():
        raise InvalidArgument(f"{path} has no store of the original Queueber")
    try:
        return rocksdict.Rdict.list_cf(str(path), rocksdict.Options(raw_mode=True))
    except Exception as error:
        raise _unreadable(path, error) from error


def _time(rest: bytes) -> int:
    return int.from_bytes(rest[:_TIME_BYTES])


def _unreadable(path: Path, error: Exception, item_id: bytes | None = None) -> StorageCorrupt:
    what = "" if item_id is None else f"item {item_id.hex()} of "
    return StorageCorrupt(f"{what}the store in {path} cannot be read: {str(error).strip()}")
