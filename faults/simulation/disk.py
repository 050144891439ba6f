"""A simulated disk: a crash loses writes that were not synced.

After a crash it holds the first so many batches, at least all that were synced, each as a whole.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from random import Random

from queueber.db.families import Family
from queueber.errors import Unavailable


class Crashed(BaseException):
    """The simulated server has crashed. Only the code that runs the server catches this."""


class SortedMap:
    """The entries of a family in the order of their keys."""

    __slots__ = ("_keys", "_values")

    def __init__(self, keys: list[bytes], values: dict[bytes, bytes]) -> None:
        self._keys = keys
        self._values = values

    def copy(self) -> "SortedMap":
        return SortedMap(self._keys.copy(), self._values.copy())

    def get(self, key: bytes) -> bytes | None:
        return self._values.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self._values:
            insort(self._keys, key)
        self._values[key] = value

    def delete(self, key: bytes) -> None:
        if self._values.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]

    def delete_range(self, start: bytes, stop: bytes) -> None:
        for key in self.keys(start, stop):
            self.delete(key)

    def keys(self, start: bytes, stop: bytes) -> list[bytes]:
        return self._keys[bisect_left(self._keys, start) : bisect_left(self._keys, stop)]

    def entries(
        self, start: bytes, stop: bytes, limit: int | None = None
    ) -> list[tuple[bytes, bytes]]:
        values = self._values
        return [(key, values[key]) for key in self.keys(start, stop)[:limit]]


Families = dict[Family, SortedMap]
Write = Callable[[Families], None]
"""One atomic batch."""


def no_families() -> Families:
    return {family: SortedMap([], {}) for family in Family}


class Disk:
    """The disk from the start of one server to its crash."""

    def __init__(self, synced: Families) -> None:
        self._safe = synced
        self._unsafe: list[Write] = []
        self.on_write: Callable[[], None] = lambda: None
        """Called after each write; may raise `Crashed`."""
        self.now: Families = {family: entries.copy() for family, entries in synced.items()}
        self.written = 0
        self.synced = 0
        self.is_full = False
        self.was_full = False
        self.is_broken = False
        """Syncs fail."""
        self.is_dead = False

    def write(self, write: Write) -> None:
        if self.is_dead:
            return  # a crashed server may still run a few steps, which reach no disk
        if self.is_full:
            raise Unavailable("the disk of the data directory is full")
        write(self.now)
        self._unsafe.append(write)
        self.written += 1
        self.on_write()

    def sync(self, up_to: int) -> None:
        """Make the first `up_to` writes since the start durable."""
        if not self.is_dead and up_to > self.synced:
            self._make_safe(up_to - self.synced)
            self.synced = up_to

    def _make_safe(self, count: int) -> None:
        for write in self._unsafe[:count]:
            write(self._safe)
        del self._unsafe[:count]

    def crash(self) -> None:
        self.is_dead = True

    def left_after_crash(self, random: Random) -> tuple[Families, int]:
        """What the next server finds, and how many writes are lost."""
        kept = random.choice([0, len(self._unsafe), random.randint(0, len(self._unsafe))])
        lost = len(self._unsafe) - kept
        self._make_safe(kept)
        return self._safe, lost
