"""What a step of an upgrade works with: a store to read, one to write, and whom to tell.

Families are named as text, because those of an old format are not those of today.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import rocksdict

from queueber.db.recovery.opening import open_of_any_format, open_raw
from queueber.errors import StorageCorrupt, StorageFailed
from queueber.limits import MIB

_BATCH_BYTES = MIB


@dataclass
class Work:
    """What a step is told beside the stores, and what it tells."""

    now_ms: int
    show: Callable[[int, int], None] = lambda done, total: None
    """Called now and then with the number of items that are done, and of all."""
    notes: list[str] = field(default_factory=list)
    """What the user has to know: a sentence each."""


class DamagedStore(StorageCorrupt):
    """The store to upgrade is not sound; it is as it was."""

    def __init__(self, reason: object, number: int) -> None:
        super().__init__(
            f"{reason}; nothing was changed: use the version of Queueber that wrote the store "
            f"(format {number}) to verify and repair it, then run 'queueber upgrade'"
        )


class OldStore:
    """A store of an earlier format. It is only read."""

    def __init__(self, path: Path, number: int) -> None:
        self.number = number
        try:
            self._database, self.torn = open_of_any_format(path)
        except StorageCorrupt as error:
            raise DamagedStore(error, number) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._database.close()

    def get(self, family: str, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._database.get_column_family(family).get(key)
        except Exception as error:
            raise DamagedStore(f"the store cannot be read ({error})", self.number) from error
        return value

    def walk(self, family: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every entry whose key begins with `prefix`, in order."""
        options = rocksdict.ReadOptions()
        options.set_total_order_seek(True)
        iterator = self._database.get_column_family(family).iter(options)
        iterator.seek(prefix)
        while iterator.valid() and (key := iterator.key()).startswith(prefix):
            yield key, iterator.value()
            iterator.next()
        try:
            iterator.status()
        except Exception as error:
            raise DamagedStore(f"the store cannot be read ({error})", self.number) from error

    def damaged(self, reason: str) -> DamagedStore:
        """The error for entries that do not go together."""
        return DamagedStore(reason, self.number)


class NewStore:
    """A store that is being written. It counts only when all of it is on disk, after `finish`.

    So it needs no log: what a kill leaves of it is deleted.
    """

    def __init__(self, path: Path, families: Collection[str]) -> None:
        path.mkdir(parents=True)
        self._database = open_raw(path, families, read_only=False)
        self._families = {name: self._database.get_column_family(name) for name in families}
        self._handles = {name: self._database.get_column_family_handle(name) for name in families}
        self._options = rocksdict.WriteOptions()
        self._options.disable_wal = True  # type: ignore[method-assign,assignment]  # the stub errs
        self._batch = rocksdict.WriteBatch(raw_mode=True)
        self._batch_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._handles.clear()
        # Closing fails if the disk is full, but then `finish` has failed before.
        for opened in (*self._families.values(), self._database):
            with contextlib.suppress(Exception):
                opened.close()
        self._families.clear()

    def put(self, family: str, key: bytes, value: bytes) -> None:
        self._batch.put(key, value, self._handles[family])
        self._batch_bytes += len(key) + len(value)
        if self._batch_bytes >= _BATCH_BYTES:
            self.write()

    def write(self) -> None:
        """Write what was put so far; a cursor shows what was written before it was made."""
        try:
            self._database.write(self._batch, self._options)
        except Exception as error:
            raise _failed(error) from error
        self._batch = rocksdict.WriteBatch(raw_mode=True)
        self._batch_bytes = 0

    def cursor(self, family: str) -> "Cursor":
        return Cursor(self._families[family])

    def finish(self) -> None:
        """Bring everything to the disk."""
        self.write()
        try:
            for family in self._families.values():
                family.flush(wait=True)
        except Exception as error:
            raise _failed(error) from error


class Cursor:
    """Finds entries of a family as it was when the cursor was made."""

    def __init__(self, family: rocksdict.Rdict) -> None:
        options = rocksdict.ReadOptions()
        options.set_total_order_seek(True)
        self._iterator = family.iter(options)

    def first_from(self, key: bytes) -> tuple[bytes, bytes] | None:
        """The first entry whose key is not before `key`."""
        self._iterator.seek(key)
        if not self._iterator.valid():
            return None
        return self._iterator.key(), self._iterator.value()


def _failed(error: Exception) -> StorageFailed:
    text = str(error).strip()
    if "No space left" in text:
        return StorageFailed("the disk is full; nothing was changed: make room, and try again")
    return StorageFailed(f"the new store cannot be written ({text}); nothing was changed")
