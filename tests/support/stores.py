"""The stores that keep the contract, each with the ways to open it again and to crash it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Protocol

from faults.simulation.disk import Disk, no_families
from faults.simulation.memory_store import MemoryStore
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from tests.support.disks import grow, small_disk
from tests.support.folders import copy_open_store


class OpenStore(Protocol):
    """A store, and what can happen to it."""

    @property
    def store(self) -> Store: ...

    def crash(self) -> Store:
        """What the next server finds after a crash at this moment."""

    def reopen(self) -> Store:
        """Close the store, and open it again."""

    def full_disk(self) -> contextlib.AbstractContextManager[Store]:
        """A store whose disk is full for the next write, and has room from `make_room` on."""

    def make_room(self) -> None: ...

    def close(self) -> None: ...


class OpenRocks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._crashes = 0
        self._all = contextlib.ExitStack()
        self.store = self._open(folder / "data")

    def _open(self, path: Path) -> RocksStore:
        return self._all.enter_context(RocksStore(path))

    def crash(self) -> RocksStore:
        self._crashes += 1
        left = self._folder / f"crashed-{self._crashes}"
        copy_open_store(self._folder / "data", left)
        return self._open(left)

    def reopen(self) -> RocksStore:
        self.store.close()
        self.store = self._open(self._folder / "data")
        return self.store

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[RocksStore]:
        self._small = self._folder / "small"
        self._small.mkdir()
        with small_disk(self._small, "4m"), RocksStore(self._small / "data") as store:
            (self._small / "ballast").write_bytes(bytes(3 << 20))
            yield store

    def make_room(self) -> None:
        grow(self._small)

    def close(self) -> None:
        self._all.close()


class OpenMemory:
    def __init__(self) -> None:
        self.store = MemoryStore(Disk(no_families()))

    def crash(self) -> MemoryStore:
        self.store.disk.crash()
        left, _ = self.store.disk.left_after_crash(Random(self.store.disk.written))
        return MemoryStore(Disk(left))

    def reopen(self) -> MemoryStore:
        """As a server that ends: all is synced."""
        self.store.sync()
        self.store.close()
        return self.crash()

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[MemoryStore]:
        self.store.disk.is_full = True
        yield self.store

    def make_room(self) -> None:
        self.store.disk.is_full = False

    def close(self) -> None:
        self.store.close()
